package control

import (
	"context"
	"time"
)

// bounds are what readers may take of the process that serves them, which has better things to do.
type bounds struct {
	connections int           // open at once; later ones wait in the kernel
	answer      time.Duration // to take an answer that is there
	idle        time.Duration // without a question, or with half of one
	patience    time.Duration // for a place, before a reader is told to come back
	questions   places
	polls       places // that wait for an operation
	whole       places // for the spans of an operation: up to 4 MiB
	examined    places
	recordings  places
}

// readBounds are those of a socket. A question takes its place for four times as long as it takes to answer, so
// that all of them together take less than a CPU however fast they come.
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

// rootBounds are those of the control socket: root has no need to be slowed down.
func rootBounds() bounds {
	b := readBounds()
	for _, p := range []*places{&b.questions, &b.polls, &b.whole, &b.examined, &b.recordings} {
		p.least, p.rest = 0, 0
	}
	return b
}

// places are for questions that are answered at once. A place is taken for at least least, and rests for so
// many times as long as the answer took.
type places struct {
	free  chan struct{}
	least time.Duration
	rest  int
}

// take waits for a place, and returns what gives it back; nil if there is none in time.
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
