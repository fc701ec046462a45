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

// Started is a source that runs already: its first events wait until Run takes them.
type Started struct {
	events chan event.Event
	end    context.CancelFunc
	err    error
}

// Start runs s at once. ctx ends it; Run must be called to take its events.
func Start(ctx context.Context, log *slog.Logger, s Source) *Started {
	ctx, end := context.WithCancel(ctx)
	started := &Started{events: make(chan event.Event, waiting), end: end}
	go func() {
		defer end()
		defer close(started.events)
		started.err = guarded(ctx, log, s, func(e event.Event) { started.events <- e })
	}()
	return started
}

// Run delivers what the source has to say. It returns when the source has ended, which
// ctx brings about, and the context given to Start.
func (s *Started) Run(ctx context.Context, sink event.Sink) error {
	defer context.AfterFunc(ctx, s.end)()
	for e := range s.events {
		sink(e)
	}
	return s.err
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
