package gather

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// Whoever never answers, also to being told that time is up, is left behind with an error,
// and whoever does says what it was doing.
func TestNothingHoldsTheFactsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		forever := make(chan struct{})
		var wg sync.WaitGroup
		var quick, polite, deaf fact.Of[int]
		find(ctx, &wg, &quick, func(context.Context) (int, error) { return 7, nil })
		find(ctx, &wg, &polite, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 1, errors.New("looking at process 12")
		})
		find(ctx, &wg, &deaf, func(context.Context) (int, error) {
			<-forever
			return 3, nil
		})
		wg.Wait()
		if quick.Value != 7 || quick.Err != nil {
			t.Errorf("who answers: %+v", quick)
		}
		if polite.Err == nil || polite.Err.Error() != "looking at process 12" {
			t.Errorf("who stops: %+v", polite)
		}
		if deaf.Value != 0 || !errors.Is(deaf.Err, context.DeadlineExceeded) || !strings.Contains(deaf.Err.Error(), "no answer in time") {
			t.Errorf("who does not: %+v", deaf)
		}
		close(forever)
	})
}
