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

type life struct {
	log *slog.Logger
	// ctx ends when sources stop; its cause is the argument of stop.
	ctx  context.Context
	stop context.CancelCauseFunc

	steps [phases][]step
	ended bool
}

type phase int

const (
	// stopSources: observing, reading and answering stop.
	stopSources phase = iota
	// flushOpen: open operations go to the sinks.
	flushOpen
	// closeSinks: queues are sent or spooled; the spool is free.
	closeSinks
	// letGo: another cniscope may take the node.
	letGo
	phases
)

// patience bounds a phase. NRI's stub needs up to 4 s, the sinks goodbye, an exporter twice 2 s to notice the end.
// Kubelet and systemd wait for 30 s (examples/kubernetes, configs/systemd).
func (p phase) patience() time.Duration {
	switch p {
	case stopSources:
		return sourcePatience + time.Second // the source is logged before
	case closeSinks:
		return goodbye + 5*time.Second
	default:
		return time.Second
	}
}

const (
	goodbye        = 5 * time.Second
	sourcePatience = 5 * time.Second
)

// ShutdownMax bounds the time from the end of Run's context to its return.
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

// successor reports whether the restarted containerd's cniscope waits for this process.
func (l *life) successor() bool { return errors.Is(context.Cause(l.ctx), nri.ErrRuntimeGone) }

func (l *life) start(name string, f func(ctx context.Context)) {
	var running sync.WaitGroup
	running.Go(func() { f(l.ctx) })
	l.at(stopSources, name, func(context.Context) { running.Wait() })
}

func (l *life) at(p phase, name string, do func(ctx context.Context)) {
	l.steps[p] = append(l.steps[p], step{name, do})
}

// end runs the phases once. After an unfinished step, which the error names, the node stays locked until exit.
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
			l.log.Error("stopping without waiting longer", "for", late, "after", p.patience())
			stuck = append(stuck, late...)
		}
	}
	if len(stuck) > 0 {
		return errors.New("did not end in time: " + strings.Join(stuck, ", "))
	}
	return nil
}

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
