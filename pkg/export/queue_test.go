package export

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
)

// quick makes retries fast.
func quick(o queue.Options) queue.Options {
	o.Name, o.RetryFrom, o.RetryTo = "test", time.Millisecond, 20*time.Millisecond
	return o
}

func newQueue(t *testing.T, to queue.Sender, o queue.Options) *Queue {
	t.Helper()
	q := NewQueue(to, quick(o))
	t.Cleanup(func() {
		if t.Failed() {
			s := q.Stats()
			t.Logf("%+v, spool %+v", s, s.Spool)
		}
		_, _ = q.Close(done())
	})
	return q
}

func newOTLPQueue(t *testing.T, addr string, o queue.Options) *Queue {
	t.Helper()
	e := harness.Must(otlp.New(otlp.Options{Endpoint: addr, Timeout: patience}))(t)
	return newQueue(t, e, o)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func enqueue(t *testing.T, q *Queue, names ...string) {
	t.Helper()
	for _, n := range names {
		if !offer(q, n) {
			t.Fatalf("%s was not taken: %+v", n, q.Stats())
		}
	}
}

func TestOperationsThatNoServerTakesDoNotWait(t *testing.T) {
	q := newOTLPQueue(t, harness.Address(t), queue.Options{Bytes: 100 << 20})
	if offer(q, strings.Repeat("x", queue.MaxItem)) || offer(q, "\xff") {
		t.Error("taken")
	}
	if s := q.Stats(); s.Dropped[queue.TooLarge] != 1 || s.Dropped[queue.Invalid] != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}
