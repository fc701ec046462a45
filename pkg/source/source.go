// Package source runs the sources of events side by side and brings their events into
// one stream, which one goroutine reads.
package source

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/cniscope/cniscope/pkg/event"
)

// Source is where events come from. Run delivers them until ctx ends; an error ends all
// sources.
type Source interface {
	Run(ctx context.Context, sink event.Sink) error
}

// waiting is how many events may wait for the reader. It bounds memory, not what is
// observed: behind it each source has a queue of its own that counts what it drops.
const waiting = 4096

// Merge runs the sources until ctx ends or one of them fails, and hands their events,
// one after another, to take. When it returns, everything that the sources delivered
// has been taken.
func Merge(ctx context.Context, log *slog.Logger, take event.Sink, sources ...Source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(sources))
	events := make(chan event.Event, waiting)
	var running sync.WaitGroup
	for _, s := range sources {
		running.Go(func() {
			if err := guarded(ctx, log, s, func(e event.Event) { events <- e }); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	go func() {
		running.Wait()
		close(events)
	}()
	for e := range events {
		take(e)
	}
	select {
	case err := <-failed: // the first; the others ended because of it
		return err
	default:
		return nil
	}
}

// guarded turns a panic into an error: the other sources are told to end, and what was
// observed is still exported.
func guarded(ctx context.Context, log *slog.Logger, s Source, sink event.Sink) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("a source panicked; please report this", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%T panicked: %v", s, r)
		}
	}()
	return s.Run(ctx, sink)
}

// Begun is a source that runs before anybody takes its events.
type Begun struct {
	cancel context.CancelFunc
	sinks  chan event.Sink
	ended  chan error
}

// Begin runs s at once. Its first event waits, and s with it, until Run is called or ctx
// ends: s needs a queue of its own.
func Begin(ctx context.Context, log *slog.Logger, s Source) *Begun {
	ctx, cancel := context.WithCancel(ctx)
	b := &Begun{cancel: cancel, sinks: make(chan event.Sink, 1), ended: make(chan error, 1)}
	go func() {
		var sink event.Sink
		b.ended <- guarded(ctx, log, s, func(e event.Event) {
			if sink == nil {
				select {
				case sink = <-b.sinks:
				case <-ctx.Done():
					return // nobody is going to take it
				}
			}
			sink(e)
		})
	}()
	return b
}

// Run delivers the events as Source says. It is called once.
func (b *Begun) Run(ctx context.Context, sink event.Sink) error {
	defer b.cancel()
	defer context.AfterFunc(ctx, b.cancel)()
	b.sinks <- sink
	return <-b.ended
}
