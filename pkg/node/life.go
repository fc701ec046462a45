package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/nri"
)

// life owns what runs in a cniscope that observes a node, each goroutine of it, and ends
// it in phases: one is over, or was given up, before the next begins.
type life struct {
	log *slog.Logger
	// ctx ends when the sources are to stop; its cause is what stop was called with.
	ctx  context.Context
	stop context.CancelCauseFunc

	steps [phases][]step
	ended bool
}

type phase int

const (
	// stopSources: nothing is observed, read or answered any more.
	stopSources phase = iota
	// flushOpen: what is open goes to the sinks, as far as it is known.
	flushOpen
	// closeSinks: what waits is sent, or stays in the spool, which is free then.
	closeSinks
	// letGo of the node: the next cniscope may begin.
	letGo
	phases
)

// patience is how long a phase may take. A source needs up to 4 s (NRI's stub); the sinks
// have goodbye to deliver what waits, and an exporter twice two seconds to notice that it
// is over. Kubelet and systemd wait for 30 s (examples/kubernetes, configs/systemd).
func (p phase) patience() time.Duration {
	switch p {
	case stopSources:
		return sourcePatience + time.Second // which source it is has been said by then
	case closeSinks:
		return goodbye + 5*time.Second
	default:
		return time.Second
	}
}

const (
	// goodbye is how long cniscope tries to deliver the queues when it stops.
	goodbye        = 5 * time.Second
	sourcePatience = 5 * time.Second // sourcePatience is how long one source may take to end.
)

// ShutdownMax bounds the time from the end of the context of Run to its return.
func ShutdownMax() (d time.Duration) {
	for p := range phases {
		d += p.patience()
	}
	return d
}

type step struct {
	name string
	do   func(ctx context.Context)
}

func newLife(ctx context.Context, log *slog.Logger) *life {
	l := &life{log: log}
	l.ctx, l.stop = context.WithCancelCause(ctx)
	return l
}

// successor reports whether the next containerd's cniscope waits for this process to exit.
func (l *life) successor() bool { return errors.Is(context.Cause(l.ctx), nri.ErrRuntimeGone) }

// start runs f in a goroutine until the sources stop, and has end wait for it.
func (l *life) start(name string, f func(ctx context.Context)) {
	var running sync.WaitGroup
	running.Go(func() { f(l.ctx) })
	l.at(stopSources, name, func(context.Context) { running.Wait() })
}

// at has something done in a phase of the end, beside the other steps of that phase. ctx
// ends when the phase's time is over.
func (l *life) at(p phase, name string, do func(ctx context.Context)) {
	l.steps[p] = append(l.steps[p], step{name, do})
}

// end ends everything. The error names what did not end in its time; then the node is not let go of either:
// the kernel does that, with all else, when the process is over. A second call does nothing.
func (l *life) end() error {
	if l.ended {
		return nil
	}
	l.ended = true
	l.stop(nil)
	var stuck []string
	for p := range phases {
		if p == letGo && len(stuck) > 0 {
			continue
		}
		if late := l.pass(p); len(late) > 0 {
			l.log.Error("cniscope ends without waiting any longer", "for", late, "after", p.patience())
			stuck = append(stuck, late...)
		}
	}
	if len(stuck) > 0 {
		return errors.New("did not end in time: " + strings.Join(stuck, ", "))
	}
	return nil
}

// pass does the steps of a phase side by side, and returns the names of those that are not
// done when its time is over.
func (l *life) pass(p phase) []string {
	ctx, cancel := context.WithTimeout(context.Background(), p.patience())
	defer cancel()
	left := map[int]string{}
	done := make(chan int, len(l.steps[p]))
	for i, s := range l.steps[p] {
		left[i] = s.name
		go func() {
			s.do(ctx)
			done <- i
		}()
	}
	for over := false; len(left) > 0 && !over; {
		select {
		case i := <-done:
			delete(left, i)
		case <-ctx.Done():
			over = true
		}
	}
	for len(done) > 0 {
		delete(left, <-done)
	}
	return slices.Sorted(maps.Values(left))
}
