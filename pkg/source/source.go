// Package source runs the sources of a node and merges their events into one stream.
//
// A new source is a package and one line in pkg/node/observe.go. Its rules:
//
//   - The constructor starts and opens nothing. Run does, once, and undoes it before it returns.
//   - Run returns soon after its context ends, and delivers all observed events first. It may never be called.
//   - Without a feature it continues, and reports event.Degraded once, and again when the feature is back. An error of
//     Run stops cniscope.
//   - Observed processes never wait. The sink may block, so a bounded queue precedes it; drops are event.Lost.
//   - Strings are cleaned (pkg/text), secrets do not leave, times are monotonic (pkg/clock).
//   - At most one source sends ticks: a tick promises that every earlier process event was delivered.
//   - It imports no consumer.
package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
)

// Source follows the rules of the package.
type Source interface {
	Name() string
	Run(ctx context.Context, sink event.Sink) error
	// Stats never waits, and is safe for concurrent use.
	Stats() Stats
}

// Stats is the state of a source.
type Stats struct {
	State   string
	Unready bool
	// All values of event.Degraded.Feature and event.Lost.Reason, for metrics.
	Features, Losses []string
	// Failed runs of a part, which no event reports.
	Missed   uint64
	Readings []meter.Reading
}

// Drops observes dropped packets of waiting pods.
type Drops interface {
	// until is monotonic ns
	Follow(in event.Namespace, addresses []string, until int64)
	Asks(in event.Namespace)
	Seen(in event.Namespace) []event.Drop
	Forget(in event.Namespace)
}

// Now returns an event at this time.
func Now(body event.Body) event.Event { return event.Event{Time: clock.Monotonic(), Body: body} }

// Merge runs the sources until ctx ends or one fails, and passes their events to take one at a time. It names a source
// that does not return within patience.
func Merge(ctx context.Context, log *slog.Logger, patience time.Duration, take event.Sink, sources ...Source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(sources))
	events := newHandover()
	running := map[int]string{}
	ends := make(chan int, len(sources))
	for i, s := range sources {
		running[i] = s.Name()
		go func() {
			defer func() { ends <- i }()
			if err := guarded(ctx, log, s, events.put); err != nil {
				failed <- err
				cancel()
			}
		}()
	}
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience, func() { close(late) }) })()
	for given := false; len(running) > 0 && !given; {
		select {
		case <-events.wake:
			events.handOn(take)
		case i := <-ends:
			delete(running, i)
		case <-late:
			given = true
		}
	}
	events.handOn(take)
	var err error
	select {
	case err = <-failed:
	default:
	}
	for len(ends) > 0 {
		delete(running, <-ends)
	}
	if names := slices.Sorted(maps.Values(running)); len(names) > 0 {
		log.Error("sources do not stop", "sources", names, "after", patience)
		err = errors.Join(err, fmt.Errorf("sources do not stop: %s", strings.Join(names, ", ")))
	}
	return err
}

// Started is a running source. Its first events wait for Run.
type Started struct {
	Source
	events chan event.Event
	end    context.CancelFunc
	ended  chan struct{}
	err    error // valid after ended
	taken  atomic.Bool
}

// Start runs s until ctx ends; its events need Run.
func Start(ctx context.Context, log *slog.Logger, s Source) *Started {
	ctx, end := context.WithCancel(ctx)
	started := &Started{Source: s, events: make(chan event.Event, waiting), end: end, ended: make(chan struct{})}
	go func() {
		defer close(started.ended)
		defer end()
		defer close(started.events)
		started.err = guarded(ctx, log, s, func(e event.Event) { started.events <- e })
	}()
	return started
}

// Run returns when the source has, after the end of either context.
func (s *Started) Run(ctx context.Context, sink event.Sink) error {
	defer context.AfterFunc(ctx, s.end)()
	s.taken.Store(true)
	for e := range s.events {
		sink(e)
	}
	return s.err
}

// Close ends the source and waits for it. Without Run its events are dropped.
func (s *Started) Close() {
	s.end()
	if !s.taken.Load() {
		for range s.events {
			continue
		}
	}
	<-s.ended
}

// guarded turns a panic into an error, so that observed events are still exported.
func guarded(ctx context.Context, log *slog.Logger, s Source, sink event.Sink) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("a source panicked; please report this", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked: %v", s.Name(), r)
		}
	}()
	return s.Run(ctx, sink)
}
