package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/node/learned"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/terminal"
)

// Recording is where a recording goes.
type Recording struct {
	Version string
	// Path is a file, or - for Out.
	Path        string
	Overwrite   bool
	Out         io.Writer
	Diagnostics io.Writer
	// Done takes the counts at the end, in place of a line on Diagnostics.
	Done func(events, operations int)
}

// Record records the node until ctx ends, through the running cniscope if there is one.
func Record(ctx context.Context, o config.Options, to Recording) error {
	out := openLog()
	defer out.close(nil)
	log := out.logger(o.Log.Format)
	setLevel(out.level, o)
	release, err := lock.Take(o.State.Dir, "cniscope record")
	if held, is := errors.AsType[*lock.HeldError](err); is {
		return recordRunning(ctx, o, to, log, held)
	}
	if err != nil {
		return err
	}
	defer release()
	s := settings.Of(o, record.Host().BootID, to.Version)
	keeps := learned.Open(o, log)
	if o.Slow.Baseline {
		s.Baseline = keeps.Load()
	}
	header, err := s.Header()
	if err != nil {
		return err
	}
	l := newLife(ctx, log)
	r, err := newRecorder(to, header, s, log, func() { l.stop(nil) })
	if err != nil {
		return err
	}
	node := newObserver(l.ctx, log, o, nil)
	l.at(stopSources, "NRI", func(context.Context) { node.close() })
	err = node.prepare(l, o, r.open.Load, keeps.Key())
	r.late.looks = node.firsts
	if err == nil {
		err = node.run(l.ctx, r.take)
	}
	return r.close(errors.Join(err, l.end()))
}

// behindMax bounds the wait for earlier events, which the running cniscope sends five times a second.
const behindMax = 10 * time.Second

// silentMax bounds that wait without ticks: the running cniscope has no probe, is older, or hangs.
const silentMax = 2 * time.Second

func recordRunning(ctx context.Context, o config.Options, to Recording, log *slog.Logger, held *lock.HeldError) error {
	stream, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var told atomic.Int64 // monotonic ns of the end; 0: not yet
	var ticked atomic.Bool
	defer context.AfterFunc(ctx, func() {
		told.Store(clock.Monotonic())
		time.AfterFunc(silentMax, func() {
			if !ticked.Load() {
				end()
			}
		})
		time.AfterFunc(behindMax, end)
	})()
	body, err := control.Client{Dir: o.State.Dir}.Record(stream)
	if err != nil {
		return fmt.Errorf("%w, and it does not let others look on: %w", held, err)
	}
	defer body.Close()
	in, err := record.NewReader(body)
	if err != nil {
		return err
	}
	s, _, err := settings.In(in.Header()) // checked by the running cniscope
	if err != nil {
		return err
	}
	r, err := newRecorder(to, in.Header(), s, log, end)
	if err != nil {
		return err
	}
	fmt.Fprintf(to.Diagnostics, "recording what the running cniscope sees (%s)\n", held.Holder)
	for {
		e, err := in.Next()
		switch {
		case err == nil:
			r.take(e)
		case stream.Err() != nil && r.failed == nil && !ticked.Load():
			log.Info("no progress reported by the running cniscope, latest events may be missing", "waited", silentMax)
			return r.close(nil)
		case stream.Err() != nil && r.failed == nil:
			log.Warn("running cniscope is behind, latest events are missing", "waited", behindMax)
			return r.close(nil)
		case stream.Err() != nil || errors.Is(err, io.EOF):
			return r.close(nil)
		default:
			return r.close(err)
		}
		if _, tick := e.Body.(*event.Tick); tick {
			ticked.Store(true)
			if told.Load() != 0 && e.Time >= told.Load() {
				return r.close(nil) // all earlier events have come
			}
		}
	}
}

type recorder struct {
	log      *slog.Logger
	path     string
	out      *record.Writer
	pipeline *pipeline.Pipeline
	late     latecomers  // without looks if another cniscope makes them
	open     atomic.Bool // operations are open
	progress progress
	failed   error
	stop     context.CancelFunc
}

func newRecorder(
	to Recording, header record.Header, s settings.Settings, log *slog.Logger, stop context.CancelFunc,
) (r *recorder, err error) {
	r = &recorder{
		log: log, path: to.Path, pipeline: s.Pipeline(header.BootID), late: latecomers{log: log}, stop: stop,
		progress: progress{w: to.Diagnostics, live: terminal.Is(to.Diagnostics), summary: to.Done},
	}
	if to.Path == "-" {
		r.out, err = record.NewWriter(to.Out, header)
	} else {
		r.out, err = record.Create(to.Path, header, to.Overwrite)
	}
	return r, err
}

func (r *recorder) take(e event.Event) {
	lines{log: r.log}.Event(e)
	if err := r.out.Write(e); errors.Is(err, record.ErrTooLong) {
		r.log.Warn("event left out of the recording", "error", err)
	} else if err != nil {
		r.failed = fmt.Errorf("cannot write %s: %w", r.path, err)
		r.stop()
	}
	r.progress.events++
	for _, result := range r.pipeline.Apply(e) {
		if _, is := result.(*pipeline.Judged); is {
			r.progress.calls++
		}
		if r.late.looks != nil {
			r.late.take(result)
		}
	}
	r.open.Store(r.pipeline.Busy())
	r.progress.draw(e)
	if _, tick := e.Body.(*event.Tick); tick {
		_ = r.out.Flush() // for readers, and in case of a crash
	}
}

func (r *recorder) close(err error) error {
	if err == nil {
		err = r.failed
	}
	if closing := r.out.Close(); err == nil {
		err = closing
	}
	r.progress.calls += len(r.pipeline.Flush())
	r.progress.done(r.path)
	return err
}

type progress struct {
	w             io.Writer
	live          bool
	summary       func(events, calls int)
	events, calls int
	last          int64
}

func (n *progress) draw(e event.Event) {
	if n.live && e.Time-n.last > int64(200*time.Millisecond) {
		n.last = e.Time
		fmt.Fprintf(n.w, "\rrecording: %d events, %d traces; Ctrl-C ends it ", n.events, n.calls)
	}
}

func (n *progress) done(path string) {
	if n.live {
		fmt.Fprint(n.w, "\r\x1b[K")
	}
	switch {
	case n.summary != nil:
		n.summary(n.events, n.calls)
	case path != "-":
		fmt.Fprintf(n.w, "%d events, %d traces; draw them: cniscope show %s\n", n.events, n.calls, path)
	}
}

// streamRoom is how many events a recording may lag: 30 pods.
const streamRoom = 1 << 14

type stream struct {
	mu     sync.Mutex
	out    *record.Writer
	failed error
}

func (*stream) Wants(event.Body) bool { return true }

// Waits requests ticks: they show the client that all events have come.
func (*stream) Waits() bool { return true }

func (*stream) Result(pipeline.Result) {}

func (r *stream) Event(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return
	}
	if err := r.out.Write(e); err != nil && !errors.Is(err, record.ErrTooLong) {
		r.failed = err
	}
}

func (r *stream) sent(flush func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.out.Flush()
		flush()
	}
	return r.failed
}

func (n *node) record(ctx context.Context, s settings.Settings, w http.ResponseWriter, flush, wake func()) error {
	r := &stream{}
	r.mu.Lock() // events wait for the header
	joined := n.join(r, &s)
	header, err := s.Header()
	if err == nil {
		r.out, err = record.NewWriter(w, header)
	}
	r.failed = err
	r.mu.Unlock()
	wake()
	seen := time.NewTicker(200 * time.Millisecond)
	defer seen.Stop()
	for over := false; err == nil && !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-seen.C:
			err = r.sent(flush)
		}
	}
	n.consumers.leave(joined)
	if r.failed != nil {
		return r.failed
	}
	return r.out.Close()
}

func (n *node) join(r *stream, s *settings.Settings) *consumed {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.Judge = n.pipeline.Judge; s.Judge.Baseline {
		s.Baseline = n.pipeline.Usual.Document()
	}
	return n.consumers.join("recording", r, streamRoom, slices.Collect(maps.Values(n.opening))...)
}

type opening map[reflect.Type]event.Event

func (o opening) remember(e event.Event) {
	switch e.Body.(type) {
	case *event.Networks, *event.Programs, *event.Runtime, *event.Registered, *event.Clock:
		o[reflect.TypeOf(e.Body)] = e
	}
}
