package subprocess

import (
	"io"
	"sync"
)

// outboxMax is in bytes, for about 8,000 programs.
const outboxMax = 8 << 20

// outbox never blocks writers.
type outbox struct {
	mu      sync.Mutex
	waiting []byte
	closed  bool
	more    chan struct{}
}

func newOutbox() *outbox { return &outbox{more: make(chan struct{}, 1)} }

// put queues all bytes or, without room, none.
func (o *outbox) put(b []byte) bool {
	o.mu.Lock()
	room := len(o.waiting)+len(b) <= outboxMax
	if room {
		o.waiting = append(o.waiting, b...)
	}
	o.mu.Unlock()
	o.wake()
	return room
}

func (o *outbox) wake() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) send(to io.Writer) error {
	var spare []byte
	for range o.more {
		o.mu.Lock()
		now, closed := o.waiting, o.closed
		o.waiting = spare[:0]
		o.mu.Unlock()
		if _, err := to.Write(now); err != nil || closed {
			return err
		}
		if spare = now; cap(spare) > outboxMax/8 {
			spare = nil
		}
	}
	return nil
}
