package proctracker

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// hosts is a world without plugins of the runtime.
type hosts struct{ *world }

func (h hosts) Caller(pid uint32) event.Caller {
	if h.world.Caller(pid) != "" {
		return event.CallerHost
	}
	return ""
}

func plugins(n, children int) *world {
	w := &world{}
	for i := range n {
		p := &life{pid: uint32(100 * (i + 1)), parent: runtimePID, began: ms * int64(i+1), ended: 900 * ms}
		p.of, p.runs = p, []program{{p.began + 1, "plugin"}}
		w.lives = append(w.lives, p)
		for c := range children {
			began := p.began + int64(c+2)
			w.lives = append(w.lives, &life{pid: p.pid + uint32(c) + 1, parent: p.pid, began: began, ended: 800 * ms, of: p, runs: []program{{began + 1, "child"}}})
		}
	}
	return w
}

// share passes starts and execs to a Tracker, and returns it with its events.
func share(w *world, looker Looker) (*Tracker, []event.Event) {
	var events []event.Event
	t := New(Options{Processes: 16, Known: 1000, Window: time.Duration(window), Outlive: time.Second, Looker: looker, Sink: func(e event.Event) {
		if _, tick := e.Body.(*event.Tick); !tick {
			events = append(events, e)
		}
	}})
	for _, x := range w.notices() {
		if x.n.Kind != Ended {
			w.now = x.at
			t.Take(x.n)
		}
	}
	t.Advance(w.now+window, 0)
	t.Advance(w.now+2*window, 0)
	return t, events
}

func TestOneRunHasAQuarterOfTheTable(t *testing.T) {
	w := plugins(2, 9)
	tracker, events := share(w, w)
	if s := tracker.Stats(); s.Followed != 2*4 || s.Lost[LostRoom] != 2*6 {
		t.Errorf("%+v", s)
	}
	roots, last := 0, int64(0)
	for _, e := range events {
		if e.Time < last {
			t.Errorf("%+v comes after %d", e, last)
		}
		last = e.Time
		switch body := e.Body.(type) {
		case *event.Exec:
			if body.Root {
				roots++
			}
		case *event.Lost:
			if l := w.lifeOf(body.Process); l == nil || e.Time < l.began {
				t.Errorf("lost: %+v at %d", body, e.Time)
			}
		}
	}
	harness.Equal(t, roots, 2, "runs began, want 2: who is beyond a share begins none")
}

func TestWhatTheRuntimeDidNotStartHasHalfOfTheTable(t *testing.T) {
	w := plugins(12, 0)
	tracker, _ := share(w, hosts{w})
	if s := tracker.Stats(); s.Followed != 8 || s.Refused != 4 || s.Lost[LostRoom] != 0 {
		t.Errorf("foreign: %+v", s)
	}
	w = plugins(20, 0)
	tracker, _ = share(w, w)
	if s := tracker.Stats(); s.Followed != 16 || s.Refused != 0 || s.Lost[LostRoom] != 4 {
		t.Errorf("the runtime's: %+v", s)
	}
}
