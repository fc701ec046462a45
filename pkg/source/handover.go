package source

import (
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// waiting is how many events may wait for whoever takes them. It bounds memory, not what is
	// observed: behind it each source has a queue of its own that counts what it drops.
	waiting = 4096
	// together is how many are taken at once, if there are as many.
	together = 256
	// within is when an event is taken at the latest, from one tick to the next: to wake whoever takes them for
	// each by itself costs more than most take.
	within = 50 * time.Millisecond
)

// handover is where the events of all sources wait, in the order in which they came, to be taken together.
type handover struct {
	wake chan struct{} // there are events to be taken

	mu     sync.Mutex // of what follows
	room   sync.Cond  // for another event
	events []event.Event
	taken  []event.Event // what was taken last: its room is used again
	late   *time.Timer   // wakes for events that nothing hurries
}

func newHandover() *handover {
	h := &handover{wake: make(chan struct{}, 1)}
	h.room.L = &h.mu
	h.late = time.AfterFunc(time.Hour, h.hurry)
	h.late.Stop()
	return h
}

// put adds an event, once there is room.
func (h *handover) put(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.events) >= waiting {
		h.room.Wait()
	}
	h.events = append(h.events, e)
	switch {
	case hurries(e), len(h.events)%together == 0:
		h.hurry()
	case len(h.events) == 1:
		h.late.Reset(within)
	}
}

// hurry has what waits be taken.
func (h *handover) hurry() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// handOn hands on all that waits, and keeps nothing of it.
func (h *handover) handOn(take event.Sink) {
	events := h.take()
	for _, e := range events {
		take(e)
	}
	clear(events) // what they refer to is theirs who took them
}

// take returns all that waits, which is valid until it is called again.
func (h *handover) take() []event.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late.Stop()
	h.events, h.taken = h.taken[:0], h.events
	h.room.Broadcast()
	return h.taken
}

// hurries reports whether an event waits for no other: what others wait for, and plugins, which are looked at while they run.
func hurries(e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Tick:
		return true
	case *event.Exec:
		return b.InPath
	}
	return false
}
