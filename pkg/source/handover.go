package source

import (
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// waiting bounds events. Sources have earlier queues, which count drops.
	waiting  = 4096
	together = 256
	// within bounds an event's delay: waking the consumer costs more than most events.
	within = 50 * time.Millisecond
)

type handover struct {
	wake chan struct{} // events are waiting

	mu     sync.Mutex // guards what follows
	room   sync.Cond
	events []event.Event
	taken  []event.Event // the last batch, for reuse
	late   *time.Timer   // wakes for other events
}

func newHandover() *handover {
	h := &handover{wake: make(chan struct{}, 1)}
	h.room.L = &h.mu
	h.late = time.AfterFunc(time.Hour, h.hurry)
	h.late.Stop()
	return h
}

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

func (h *handover) hurry() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *handover) handOn(take event.Sink) {
	events := h.take()
	for _, e := range events {
		take(e)
	}
	clear(events) // drop the references
}

func (h *handover) take() []event.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late.Stop()
	h.events, h.taken = h.taken[:0], h.events
	h.room.Broadcast()
	return h.taken
}

// hurries reports urgency: a tick, or a plugin, which is examined while it runs.
func hurries(e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Tick:
		return true
	case *event.Exec:
		return b.InPath
	}
	return false
}
