package source

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

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
