package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/record"
)

// broadcast hands the events of a running cniscope to whoever records them. Nobody waits
// for a reader: what one is too slow for is dropped, counted, and said in its recording.
type broadcast struct {
	mu      sync.Mutex
	readers map[*reader]bool
	// What a recording must begin with, to be read like one from the start.
	networks, runtime, clock *event.Event
}

type reader struct {
	events  chan event.Event
	dropped uint64
}

// readerQueue is what one reader may lag behind: a storm of 30 pods.
const readerQueue = 1 << 14

func newBroadcast() *broadcast { return &broadcast{readers: map[*reader]bool{}} }

func (b *broadcast) send(e event.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.Body.(type) {
	case *event.Networks:
		b.networks = &e
	case *event.Runtime:
		b.runtime = &e
	case *event.Clock:
		b.clock = &e
	}
	for r := range b.readers {
		if r.dropped > 0 {
			lost := event.Event{Time: e.Time, Body: &event.Lost{Source: "recording", Reason: "reader too slow", Count: r.dropped}}
			select {
			case r.events <- lost:
				r.dropped = 0
			default:
			}
		}
		select {
		case r.events <- e:
		default:
			r.dropped++
		}
	}
}

func (b *broadcast) join() *reader {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &reader{events: make(chan event.Event, readerQueue)}
	for _, e := range []*event.Event{b.networks, b.runtime, b.clock} {
		if e != nil {
			r.events <- *e
		}
	}
	b.readers[r] = true
	return r
}

func (b *broadcast) leave(r *reader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.readers, r)
}

// is reports whether anybody records.
func (b *broadcast) is() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.readers) > 0
}

// record writes a recording of what a reader is handed, until ctx ends: what waits for it then is still written.
func (b *broadcast) record(ctx context.Context, r *reader, header record.Header, w http.ResponseWriter, flush func()) error {
	out, err := record.NewWriter(w, header)
	if err != nil {
		return err
	}
	seen := time.NewTicker(200 * time.Millisecond)
	defer seen.Stop()
	for {
		select {
		case <-ctx.Done():
			for range len(r.events) { // and not what comes meanwhile, which may have no end
				if err := out.Write(<-r.events); err != nil && !errors.Is(err, record.ErrTooLong) {
					return err
				}
			}
			return out.Close()
		case <-seen.C:
			if err := out.Flush(); err != nil {
				return err
			}
			flush()
		case e := <-r.events:
			if err := out.Write(e); err != nil && !errors.Is(err, record.ErrTooLong) {
				return err
			}
		}
	}
}
