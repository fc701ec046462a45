package subprocess

import (
	"bytes"
	"io"
	"sync/atomic"
)

// outboxMax is in bytes, for about 8,000 programs.
const outboxMax = 8 << 20

// outbox never blocks its one writer.
type outbox struct {
	batches chan []byte
	size    atomic.Int64 // of the batches
}

func newOutbox() *outbox { return &outbox{batches: make(chan []byte, 4096)} }

// put queues a copy or, without room, nothing.
func (o *outbox) put(b []byte) bool {
	if o.size.Load()+int64(len(b)) > outboxMax || len(o.batches) == cap(o.batches) {
		return false
	}
	o.size.Add(int64(len(b)))
	o.batches <- bytes.Clone(b)
	return true
}

func (o *outbox) close() { close(o.batches) }

func (o *outbox) send(to io.Writer) error {
	for b := range o.batches {
		if _, err := to.Write(b); err != nil {
			return err
		}
		o.size.Add(-int64(len(b)))
	}
	return nil
}
