package control

import (
	"context"
	"time"
)

type bounds struct {
	connections int // open at once; others wait in the kernel
	answer      time.Duration
	idle        time.Duration // without a complete request
	patience    time.Duration // for a place, before 503
	questions   places
	polls       places // waiting for an operation
	whole       places // for an operation's spans, up to 4 MiB each
	examined    places
	recordings  places
}

// readBounds are the read-only socket's. A place is held for four times its answer's duration, so that no request
// rate uses a whole CPU.
func readBounds() bounds {
	return bounds{
		connections: 32, answer: 15 * time.Second, idle: 5 * time.Second, patience: 5 * time.Second,
		questions:  places{free: make(chan struct{}, 2), rest: 3},
		polls:      places{free: make(chan struct{}, 8), least: time.Second},
		whole:      places{free: make(chan struct{}, 1), rest: 3},
		examined:   places{free: make(chan struct{}, 4), least: 100 * time.Millisecond},
		recordings: places{free: make(chan struct{}, 2), least: time.Second},
	}
}

func rootBounds() bounds {
	b := readBounds()
	for _, p := range []*places{&b.questions, &b.polls, &b.whole, &b.examined, &b.recordings} {
		p.least, p.rest = 0, 0
	}
	return b
}

// places bound a kind's requests. Each holds a place for least or longer, then for rest times its answer's duration.
type places struct {
	free  chan struct{}
	least time.Duration
	rest  int
}

func (p places) take(ctx context.Context, patience time.Duration) (leave func()) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case p.free <- struct{}{}:
	case <-late.C:
		return nil
	case <-ctx.Done():
		return nil
	}
	began := time.Now()
	return func() {
		took := time.Since(began)
		time.AfterFunc(max(p.least-took, time.Duration(p.rest)*took), func() { <-p.free })
	}
}
