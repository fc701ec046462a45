// Package source defines sources of events, runs the sources of a node concurrently and merges their events into one
// stream, which one goroutine reads.
//
// A new source is a package of its own and one line in plugin/cniscope/observe.go. Its rules:
//
//   - Its constructor starts and opens nothing. Run does, once, and undoes all of it before it returns.
//   - Run returns soon after its context ends, and first delivers all observed events. It may never be called.
//   - If a feature is unavailable on this machine, the source continues without it, and reports event.Degraded once,
//     and again when the feature is back. An error of Run stops cniscope: only for a source without which nothing is
//     observed.
//   - Observed processes never wait for it. The sink may block, so a bounded queue precedes it; drops are counted and
//     reported as event.Lost under the source's name.
//   - It delivers only pkg/event. Raw bytes end in the source: strings are bounded and cleaned (pkg/text), secrets do
//     not leave, times are of the monotonic clock (pkg/clock).
//   - At most one source of a node sends ticks: a tick promises that every earlier process event was delivered.
//   - It imports no package of a consumer; a lint rule (.golangci.yml, depguard) enforces that.
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

// Source is a source of events. The package's documentation has its rules.
type Source interface {
	// Name is its constant name in event.Lost, the log and the metrics: one or two words.
	Name() string
	// Run delivers events to sink until ctx ends. It is called at most once.
	Run(ctx context.Context, sink event.Sink) error
	// Stats returns the current state. It is safe for concurrent use at any time, and does not wait.
	Stats() Stats
}

// Stats is the state of a source.
type Stats struct {
	// State is one or two words for people: "attached", "registered"; may be empty.
	State string
	// Unready is true while this source prevents any observation; /readyz reports it.
	Unready bool
	// Features may be unavailable (event.Degraded.Feature), and Losses are reasons of lost events
	// (event.Lost.Reason): metrics begin with all of them.
	Features, Losses []string
	// Missed counts failed runs of a part of the source. It could not see what it missed, so no event reports it.
	Missed   uint64
	Readings []meter.Reading
}

// Now returns an event with the current time.
func Now(body event.Body) event.Event { return event.Event{Time: clock.Monotonic(), Body: body} }

// Merge runs the sources until ctx ends or one of them fails, and passes their events to take, one at a time. It
// returns after all delivered events were taken.
//
// The log and the error name a source that does not return within patience after ctx ends; its later events are
// dropped.
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
	case err = <-failed: // the first error, which made the other sources return
	default:
	}
	for len(ends) > 0 {
		delete(running, <-ends)
	}
	if names := slices.Sorted(maps.Values(running)); len(names) > 0 {
		log.Error("sources do not end, going on without them", "sources", names, "after", patience)
		err = errors.Join(err, fmt.Errorf("sources that do not end: %s", strings.Join(names, ", ")))
	}
	return err
}

// Started is a source that already runs: its first events wait until Run takes them.
type Started struct {
	Source
	events chan event.Event
	end    context.CancelFunc
	ended  chan struct{}
	err    error       // valid after ended
	taken  atomic.Bool // Run was called
}

// Start runs s at once. ctx ends it; Run must be called to take its events.
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

// Run delivers the events of the source. It returns when the source has returned, which the end of either context
// causes.
func (s *Started) Run(ctx context.Context, sink event.Sink) error {
	defer context.AfterFunc(ctx, s.end)()
	s.taken.Store(true)
	for e := range s.events {
		sink(e)
	}
	return s.err
}

// Close ends the source and waits until it returned. It drops the events that Run did not take.
func (s *Started) Close() {
	s.end()
	if !s.taken.Load() {
		for range s.events {
			continue // until it is closed
		}
	}
	<-s.ended
}

// guarded turns a panic into an error: the other sources end, and the observed events are still exported.
func guarded(ctx context.Context, log *slog.Logger, s Source, sink event.Sink) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("a source panicked; please report this", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked: %v", s.Name(), r)
		}
	}()
	return s.Run(ctx, sink)
}
