package source

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

type source func(ctx context.Context, sink event.Sink) error

func (source) Name() string { return "source" }

func (source) Stats() Stats { return Stats{} }

func (f source) Run(ctx context.Context, sink event.Sink) error { return f(ctx, sink) }

var quiet = slog.New(slog.DiscardHandler)

func at(t int64) event.Event { return event.Event{Time: t, Body: &event.Tick{}} }

// last delivers an event when its context ends, as the probe does.
var last = source(func(ctx context.Context, sink event.Sink) error {
	<-ctx.Done()
	sink(at(99))
	return nil
})

func TestEverythingThatWasDeliveredIsTaken(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	many := source(func(_ context.Context, sink event.Sink) error {
		for i := range 3 * waiting {
			sink(at(int64(i)))
		}
		cancel()
		return nil
	})
	var taken int
	harness.Check(t, Merge(ctx, quiet, time.Hour, func(event.Event) { taken++ }, many, last))
	harness.Equal(t, taken, 3*waiting+1, "events were taken")
}

func TestASourceThatFailsEndsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	for name, bad := range map[string]source{
		"an error": func(context.Context, event.Sink) error { return broken },
		"a panic":  func(context.Context, event.Sink) error { panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			var taken []event.Event
			early := Start(t.Context(), quiet, last) // started before the others
			err := Merge(t.Context(), quiet, time.Hour, func(e event.Event) { taken = append(taken, e) }, bad, last, early)
			if err == nil || len(taken) != 2 {
				t.Errorf("%v, %d events", err, len(taken))
			}
		})
	}
}

func TestBeingToldToEndIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	if err := Merge(ctx, quiet, time.Hour, func(event.Event) {}, last); err != nil {
		t.Error(err)
	}
}

func TestWhatASourceSaysBeforeItIsRunWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	early := Start(ctx, quiet, source(func(ctx context.Context, sink event.Sink) error {
		sink(at(1))
		<-ctx.Done()
		return nil
	}))
	cancel()
	var taken int
	if err := Merge(ctx, quiet, time.Hour, func(event.Event) { taken++ }, early); err != nil || taken != 1 {
		t.Errorf("%v, %d events", err, taken)
	}
}

func TestASourceThatDoesNotEndIsNamedAndLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wake := make(chan struct{})
		stuck := hung{source(func(_ context.Context, sink event.Sink) error {
			sink(at(1))
			cancel()
			<-wake
			sink(at(2)) // too late
			return nil
		})}
		began := time.Now()
		var log strings.Builder
		var taken []event.Event
		err := Merge(ctx, slog.New(slog.NewTextHandler(&log, nil)), 5*time.Second,
			func(e event.Event) { taken = append(taken, e) }, last, stuck)
		harness.Equal(t, time.Since(began), 5*time.Second, "it took")
		if err == nil || !strings.Contains(err.Error(), "stuck one") || !strings.Contains(log.String(), "stuck one") {
			t.Errorf("%v, %s", err, log.String())
		}
		close(wake)
		synctest.Wait()
		harness.Equal(t, len(taken), 2, "events")
	})
}

type hung struct{ Source }

func (hung) Name() string { return "stuck one" }

func TestASourceThatIsNeverRunIsJoined(t *testing.T) {
	ended := false
	s := Start(t.Context(), quiet, source(func(ctx context.Context, sink event.Sink) error {
		<-ctx.Done()
		for i := range 2 * waiting {
			sink(at(int64(i)))
		}
		ended = true
		return nil
	}))
	s.Close()
	if !ended {
		t.Error("it goes on")
	}
	s.Close()
}

func TestEventsAreTakenTogether(t *testing.T) {
	for name, test := range map[string]struct {
		events int
		last   event.Body
		after  time.Duration // duration until all are consumed
	}{
		"nobody waits for them":   {3, &event.Exit{}, within},
		"a tick":                  {3, &event.Tick{}, 0},
		"a plugin begins":         {3, &event.Exec{InPath: true}, 0},
		"a command begins":        {3, &event.Exec{}, within},
		"many":                    {together, &event.Exit{}, 0},
		"the first is one of few": {1, &event.Exit{}, within},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, began := newHandover(), time.Now()
				for i := range test.events - 1 {
					h.put(event.Event{Time: int64(i), Body: &event.Exit{}})
				}
				h.put(event.Event{Time: int64(test.events - 1), Body: test.last})
				<-h.wake
				taken := h.take()
				if took := time.Since(began); took != test.after || len(taken) != test.events {
					t.Errorf("%d events after %s", len(taken), took)
				}
				for i, e := range taken {
					harness.Equal(t, e.Time, int64(i), "event is at", i)
				}
				h.put(event.Event{Body: &event.Exit{}})
				if <-h.wake; time.Since(began) != test.after+within || len(h.take()) != 1 {
					t.Errorf("the next after %s", time.Since(began))
				}
			})
		})
	}
}

func TestNothingIsKeptOfWhatWasHandedOn(t *testing.T) {
	h := newHandover()
	for range 3 {
		h.put(event.Event{Body: &event.Exit{}})
	}
	handed := 0
	h.handOn(func(e event.Event) {
		if e.Body != nil {
			handed++
		}
	})
	harness.Equal(t, handed, 3, "events")
	for _, e := range h.taken[:cap(h.taken)] {
		if e.Body != nil {
			t.Error("an event is kept")
		}
	}
}
