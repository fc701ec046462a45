// Package replay sends a recording through the pipeline of its node and keeps what comes out, in bounded time and
// memory.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
)

// Timeout bounds a reading if Options do not; 100 MB need five seconds.
const Timeout = 15 * time.Second

const (
	// memoryMax is Go's soft memory limit, liveMax bounds the live heap: 1024 pods at once need 60 MiB.
	memoryMax = 320 << 20
	liveMax   = 128 << 20
)

// Options of a reading.
type Options struct {
	Timeout time.Duration // 0: the constant
	Judge   string        // an options file with other thresholds, or ""
}

// Recording is what was read of a recording.
type Recording struct {
	kept
	All       int      // operations before filters
	Fold      bool     // its node had trace.fold_commands
	skipped   int      // events of unknown kinds
	said      []string // remarks about its header
	truncated error    // why reading ended early, or nil
	lost      error    // what a trace lacks
}

// open opens an untrusted file. Read errors after ctx ends wrap its cause.
func open(ctx context.Context, path string, others ...record.Format) (reader *record.Reader, err error) {
	if path == "-" {
		reader, err = record.NewReader(record.Until(ctx, os.Stdin), others...)
	} else {
		reader, err = record.Open(ctx, path, others...)
	}
	if err == nil {
		reader.Bound(record.MaxBytes, record.MaxEvents)
	}
	return reader, err
}

// Load reads the recording at path, "-" for standard input. Close it.
func Load(ctx context.Context, path string, o Options) (_ *Recording, err error) {
	defer Guard(path, &err)
	late := lateError{cmp.Or(o.Timeout, Timeout)}
	reading, cancel := context.WithTimeoutCause(ctx, late.limit, late)
	defer cancel()
	trace := &windowsTrace{}
	reader, err := open(reading, path, trace.recording)
	if errors.Is(err, late) {
		return nil, fmt.Errorf("cannot read %s: no data for %s; check that a program writes into it, "+
			"or wait longer with --timeout", path, late.limit)
	}
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	r, err := o.judged(reading, reader)
	if err == nil {
		r.truncated, r.lost = cmp.Or(r.truncated, trace.truncated), trace.lost
	}
	return r, err
}

// Guard turns a panic over a recording into an error. Defer it.
func Guard(path string, err *error) {
	broken := recover()
	if broken == nil {
		return
	}
	where, pcs := "", make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for frame, more := frames.Next(); more && where == ""; frame, more = frames.Next() {
		if !strings.HasPrefix(frame.Function, "runtime.") {
			where = fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
	*err = fmt.Errorf("cannot show %s: internal error at %s: %v; report it with this recording at %s",
		path, where, broken, issues)
}

const issues = "https://github.com/cniscope/cniscope/issues"

func (o Options) judged(ctx context.Context, reader *record.Reader) (r *Recording, err error) {
	s, said, err := settings.In(reader.Header())
	if err != nil {
		return nil, err
	}
	if o.Judge != "" {
		options, err := config.Source{Base: config.Default(), Path: o.Judge}.Load()
		if err != nil {
			return nil, err
		}
		s.Judge = settings.JudgeOf(options)
	}
	s.Judge.All, s.Judge.PerSecond = true, 0 // keep all: recordings are made to be seen

	debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), memoryMax))
	r = &Recording{said: said, Fold: s.Fold}
	err = Each(ctx, reader, s, liveMax, func(result pipeline.Result) error {
		switch result.(type) {
		case *pipeline.Judged:
			r.All++
		case *pipeline.Connected, *pipeline.After, *pipeline.Started:
		default: // drawn when it ends
			return nil
		}
		return r.keep(result)
	})
	r.skipped = int(reader.Skipped())
	if err == nil || isPart(err) {
		r.truncated = err
		err = r.seal()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

type partError struct {
	place string
	why   error
}

func (e *partError) Error() string { return fmt.Sprintf("%s: reading ended here: %v", e.place, e.why) }

func (e *partError) Unwrap() error { return e.why }

func isPart(err error) bool {
	return errors.As(err, new(*record.TruncatedError)) || errors.As(err, new(*record.BoundError)) ||
		errors.As(err, new(*partError))
}

// Each calls take with each result of a recording, also with those before an error, until take fails, or more than live
// bytes of the heap are in use.
func Each(
	ctx context.Context, reader *record.Reader, s settings.Settings, live uint64, take func(pipeline.Result) error,
) error {
	p := s.Pipeline(reader.Header().BootID)
	var enough error
	keep := func(r pipeline.Result) {
		if enough == nil {
			enough = take(r)
		}
	}
	var err error
	for n := 0; err == nil && enough == nil; n++ {
		if n%1024 == 0 {
			if enough = cmp.Or(context.Cause(ctx), within(live)); enough != nil {
				break
			}
		}
		e, failed := reader.Next()
		if err = failed; err == nil {
			p.Each(e, keep)
		}
	}
	why := enough // open operations may exceed the bounds
	p.FlushEach(keep)
	late, isLate := errors.AsType[lateError](err)
	switch {
	case ctx.Err() != nil && !errors.As(context.Cause(ctx), new(lateError)):
		return ctx.Err()
	case errors.Is(err, io.EOF) && enough == nil:
		return nil
	case isLate:
		return &partError{reader.Place(), late}
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case why == nil:
		why = enough
	}
	return &partError{reader.Place(), why}
}

type lateError struct{ limit time.Duration }

func (e lateError) Error() string {
	return fmt.Sprintf("it took longer than %s; --timeout %s lets it take longer", e.limit, 10*e.limit)
}

func within(most uint64) error {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 && live[0].Value.Uint64() > most {
		return fmt.Errorf("it has too many calls in progress at once: reading it needs more than %d MiB of memory", most>>20)
	}
	return nil
}

// Remarks are sentences for the reader of the operations: what is odd in the header, and what was left out.
func (r *Recording) Remarks() (all []string) {
	for _, said := range r.said {
		all = append(all, "in the recording's first line "+said)
	}
	if r.truncated != nil {
		all = append(all, r.truncated.Error())
	}
	if r.lost != nil {
		all = append(all, r.lost.Error())
	}
	if r.large > 0 {
		all = append(all, fmt.Sprintf("%d operations with more than %d MiB of spans were left out", r.large, largestKept>>20))
	}
	if r.skipped > 0 {
		all = append(all, fmt.Sprintf("%d events of a kind this version does not know were left out", r.skipped))
	}
	return all
}

// Incomplete is why operations are missing, or nil.
func (r *Recording) Incomplete() error {
	if r.truncated == nil && r.large > 0 {
		return errors.New("operations that are too large were left out, as is said above")
	}
	return cmp.Or(r.truncated, r.lost)
}
