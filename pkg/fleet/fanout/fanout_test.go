package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// Twenty silent nodes of five hundred are named, and cost few timeouts in total.
func TestDeadNodesCostNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		ask := func(ctx context.Context, node int) (string, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if node%25 == 0 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			return fmt.Sprint(node), ctx.Err()
		}
		began := time.Now()
		answered, dead := 0, 0
		for node, a := range Ask(t.Context(), numbers(500), Limits{AtOnce: 32, Patience: 5 * time.Second}, ask) {
			switch {
			case a.Err == nil && a.Value == fmt.Sprint(node):
				answered++
			case errors.Is(a.Err, ErrNoAnswer) && a.Err.Error() == "no answer within 5s":
				dead++
			default:
				t.Errorf("%d: %v %v", node, a.Value, a.Err)
			}
		}
		if answered != 480 || dead != 20 {
			t.Errorf("%d answered, %d are dead", answered, dead)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("it took %s", took)
		}
		harness.Equal(t, most.Load(), 32, "were asked at once")
	})
}

// An early end leaves nothing running (goleak).
func TestItEndsEarly(t *testing.T) {
	wait := func(ctx context.Context, node int) (int, error) {
		if node < 2 {
			return node, nil
		}
		<-ctx.Done()
		return node, ctx.Err()
	}
	for range Ask(t.Context(), numbers(100), Limits{AtOnce: 4, Patience: time.Hour}, wait) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := 0
	for range Ask(ctx, numbers(100), Limits{AtOnce: 4, Patience: time.Hour}, wait) {
		if heard++; heard == 2 {
			cancel()
		}
	}
	if heard < 2 || heard > 6 {
		t.Errorf("%d answers after the end", heard)
	}
}

func TestNobodyToAsk(t *testing.T) {
	for range Ask(t.Context(), nil, Limits{}, func(context.Context, int) (int, error) { return 0, nil }) {
		t.Error("an answer of nobody")
	}
}

// A node's own error is unchanged.
func TestErrorsAreTheNodes(t *testing.T) {
	own := errors.New("forbidden")
	for _, a := range Ask(t.Context(), numbers(1), Limits{Patience: time.Minute},
		func(context.Context, int) (int, error) { return 0, own }) {
		if !errors.Is(a.Err, own) || a.Err.Error() != "forbidden" {
			t.Error(a.Err)
		}
	}
}
