// Package source says what a source of events is, runs the sources of a node side by side
// and brings their events into one stream, which one goroutine reads.
//
// A new source is a package of its own and one line in plugin/cniscope/observe.go. It is
// admitted if it keeps these rules:
//
//   - Making it starts nothing and opens nothing. Run does, once, and undoes all of it before it
//     returns.
//   - Run ends soon after its context: what it had observed by then is delivered first. It may
//     not rely on being called at all.
//   - What it cannot have on this machine it does without, and says so by event.Degraded, once,
//     and again when it is back. An error of Run ends cniscope: it is for a source without which
//     nothing is observed.
//   - Nobody whom it observes waits for it. The sink may block, so events are taken to it from a
//     bounded queue; what finds no place there is counted and reported as event.Lost under the
//     source's name.
//   - It speaks pkg/event only. Raw bytes end in the source: strings are bounded and cleaned
//     (pkg/text), secrets do not leave, times are of the monotonic clock (pkg/clock).
//   - At most one source of a node sends ticks: a tick promises that every process event before it
//     has been delivered.
//   - It knows the packages of no destination and nothing of what becomes of its events; a lint
//     rule (.golangci.yml, depguard) keeps it so.
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

// Source is where events come from. The package's documentation has its rules.
type Source interface {
	// Name is what event.Lost, the log and the metrics call it: a word or two, and always the same.
	Name() string
	// Run delivers events to sink until ctx ends. It is called at most once.
	Run(ctx context.Context, sink event.Sink) error
	// Stats says how it is doing. It may be called at any time, from any goroutine, and waits for nobody.
	Stats() Stats
}

// Stats is how a source is doing.
type Stats struct {
	// State says it in a word or two to people: "attached", "registered"; empty where there is
	// nothing to be said.
	State string
	// Unready is set while nothing can be observed because of this source: /readyz says so.
	Unready bool
	// Features are what it may have to do without (event.Degraded.Feature), and Losses why it
	// may lose events (event.Lost.Reason): metrics begin with all of them.
	Features, Losses []string
	// Missed is how often a part of it did not run when it should have. Of what it would have seen nothing is known, so
	// that no event tells of it.
	Missed   uint64
	Readings []meter.Reading // Readings are what it counts.
}

// Now returns an event of this moment.
func Now(body event.Body) event.Event { return event.Event{Time: clock.Monotonic(), Body: body} }

// Merge runs the sources until ctx ends or one of them fails, and hands their events, one after another, to
// take. When it returns, everything that the sources delivered has been taken.
//
// A source that has not ended within patience of being told to is named in the log and in
// the error, and left behind: nobody takes what it still delivers.
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
	case err = <-failed: // the first; the others ended because of it
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

// Started is a source that runs already: its first events wait until Run takes them.
type Started struct {
	Source
	events chan event.Event
	end    context.CancelFunc
	ended  chan struct{}
	err    error       // once ended
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

// Run delivers what the source has to say. It returns when the source has ended, which
// ctx brings about, and the context given to Start.
func (s *Started) Run(ctx context.Context, sink event.Sink) error {
	defer context.AfterFunc(ctx, s.end)()
	s.taken.Store(true)
	for e := range s.events {
		sink(e)
	}
	return s.err
}

// Close ends the source and waits until it has ended. What nobody came to take by Run is dropped.
func (s *Started) Close() {
	s.end()
	if !s.taken.Load() {
		for range s.events {
			continue // until it is closed
		}
	}
	<-s.ended
}

// guarded turns a panic into an error: the other sources are told to end, and what was
// observed is still exported.
func guarded(ctx context.Context, log *slog.Logger, s Source, sink event.Sink) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("a source panicked; please report this", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked: %v", s.Name(), r)
		}
	}()
	return s.Run(ctx, sink)
}
