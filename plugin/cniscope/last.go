package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/text"
)

// showLast reads the spool again in each pass, for it may exceed memory.
func showLast(ctx context.Context, out, diagnostics io.Writer, o showOptions) error {
	dir := o.spool
	if dir == "" {
		options, err := (&optionsFile{path: o.options}).load()
		if err != nil {
			return err
		}
		if dir = options.Export.Spool.Dir; dir == "" {
			return showRemembered(ctx, out, diagnostics, options, o)
		}
	}
	h := &fromSpool{
		showOptions: o, dir: dir, since: time.Now().Add(-o.last), diagnostics: diagnostics, told: map[string]bool{},
	}
	found, err := o.draw(ctx, out, diagnostics, h.wanted(ctx))
	if err = cmp.Or(h.failed, ctx.Err(), err); err != nil {
		return err
	}
	if !found {
		err = o.nothing(diagnostics, h.all, fmt.Sprintf("that was kept in the last %s", o.last), h.wanted(ctx))
	}
	if err == nil {
		if err = o.hold(diagnostics, h.wanted(ctx), h.incomplete()); h.failed != nil {
			return h.failed
		}
	}
	switch {
	case h.incomplete() == nil || errors.As(err, new(crossedError)) || errors.As(err, new(incompleteError)):
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, h.incomplete())
	}
	return h.incomplete()
}

type incompleteError struct{ error }

func (incompleteError) ExitCode() int { return 3 }

func (h *fromSpool) incomplete() error {
	if len(h.told) == 0 {
		return nil
	}
	return incompleteError{fmt.Errorf("the spool %s is incomplete; see above", h.dir)}
}

type fromSpool struct {
	showOptions
	dir         string
	since       time.Time
	diagnostics io.Writer
	told        map[string]bool
	all         int   // in the last round
	failed      error // why the last round ended early
}

func (h *fromSpool) wanted(ctx context.Context) iter.Seq[*tracepb.ResourceSpans] {
	// Protobuf does not change text, so others need no decoding.
	pod := show.Filter{Pod: h.pod}
	name := []byte(h.pod[strings.IndexByte(h.pod, '/')+1:])
	return func(yield func(*tracepb.ResourceSpans) bool) {
		h.all = 0
		for op, err := range spool.Read(h.dir, h.since) {
			if ctx.Err() != nil {
				return
			}
			if errors.As(err, new(*spool.DamagedError)) || errors.As(err, new(*spool.UnreadableError)) {
				h.tell(err)
				continue
			}
			if err != nil {
				h.failed = explain(err)
				return
			}
			h.all++
			if !bytes.Contains(op.Data, name) {
				continue
			}
			var data tracepb.TracesData
			if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(op.Data, &data); err != nil {
				h.tell(err)
				continue
			}
			for _, spans := range data.GetResourceSpans() {
				if pod.Wants(spans) && !yield(spans) {
					return
				}
			}
		}
	}
}

func (h *fromSpool) tell(err error) {
	if !h.told[err.Error()] {
		h.told[err.Error()] = true
		fmt.Fprintf(h.diagnostics, "cniscope: %v; the rest is shown\n", err)
	}
}

func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: no spool there; give --spool the dir of [export.spool]", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: only its owner may read the spool; run as root", err)
	}
	return err
}

func (o showOptions) checkLast(args []string, set func(flag string) bool) error {
	switch {
	case len(args) == 1 && set("since"):
		return command.Usagef("show needs either a recording FILE or --since, not both")
	case len(args) == 0 && !set("since"):
		return command.Usagef("show needs a recording: give a FILE, or --since 1h for the traces on this node's disk (spool)")
	case !set("since") && set("spool"):
		return command.Usagef("--spool needs --since, such as --since 1h")
	case set("since") && o.last <= 0:
		return command.Usagef("--since: want more than 0, such as 30m, 1h or 1d")
	}
	return nil
}

type remembered struct {
	operations [][]byte // tracepb.TracesData; five times as large decoded
	ordinary   int      // operations with only a line
	since      time.Time
}

type sourceless string

func (s sourceless) Error() string { return string(s) }

func (sourceless) Unwrap() error { return control.ErrNotRunning }

func showRemembered(ctx context.Context, out, diagnostics io.Writer, options config.Options, o showOptions) error {
	r, since := memory(options.State.Dir), time.Now().Add(-o.last)
	m, err := wholeOf(ctx, r, since)
	if errors.Is(err, control.ErrNotRunning) {
		return sourceless(fmt.Sprintf("found neither a spool ([export.spool] dir in %s, or --spool DIR) nor a running "+
			"cniscope%s", cmp.Or(o.options, defaultOptionsFile()),
			strings.TrimPrefix(err.Error(), control.ErrNotRunning.Error())))
	}
	if err != nil {
		return err
	}
	found, err := o.draw(ctx, out, diagnostics, o.ofPod(m.all()))
	if err != nil {
		return err
	}
	if !found {
		if err := o.absent(ctx, diagnostics, r, m.since, since); err != nil {
			return err
		}
	}
	if m.ordinary > 0 && o.format != "json" {
		fmt.Fprintf(diagnostics, "cniscope: %s, one line each: cniscope why POD; to keep them in full, set dir in [export.spool]\n",
			digest.Count(m.ordinary, "more trace"))
	}
	return o.hold(diagnostics, o.ofPod(m.all()), errors.New("ordinary pod setups are not held in full without a spool"))
}

func wholeOf(ctx context.Context, r control.Reader, since time.Time) (m remembered, err error) {
	found, err := r.Operations(ctx, control.Query{Since: since, Problems: true})
	if err != nil {
		return m, err
	}
	m.since, m.ordinary = found.Since, found.Of
	seen := map[string]bool{}
	for _, l := range found.Operations {
		if l.Result == control.Late {
			continue // its setup is another line
		}
		if l.Result == control.Hung || l.TraceID != "" && seen[l.TraceID] {
			m.ordinary-- // its end is another line
			continue
		}
		seen[l.TraceID] = true
		raw, err := r.Spans(ctx, l.TraceID)
		if errors.Is(err, control.ErrNotRemembered) {
			continue
		}
		if err != nil {
			return m, err
		}
		if _, err := digest.Spans(raw); err != nil {
			return m, err
		}
		m.operations = append(m.operations, raw)
		m.ordinary--
	}
	return m, nil
}

func (m remembered) all() iter.Seq[*tracepb.ResourceSpans] {
	return func(yield func(*tracepb.ResourceSpans) bool) {
		for _, data := range m.operations {
			spans, _ := digest.Spans(data) // it was read before
			for _, rs := range spans {
				if !yield(rs) {
					return
				}
			}
		}
	}
}

func (o showOptions) absent(ctx context.Context, diagnostics io.Writer, r control.Reader, begins, since time.Time) error {
	of := ""
	if o.pod != "" {
		of = " of pod " + text.Clean(o.pod, text.Bound)
		namespace, pod := podNamed(o.pod)
		found, err := r.Operations(ctx, control.Query{Namespace: namespace, Pod: pod, Since: since, Limit: 1})
		if err != nil {
			return err
		}
		if found.Of == 0 && !o.limits.Set() {
			if begins.Before(since) {
				begins = since
			}
			return fmt.Errorf("no CNI call%s since %s", of, begins.UTC().Format(time.DateTime+"Z"))
		}
	}
	_, err := fmt.Fprintf(diagnostics, "cniscope: no CNI call%s was slow or failed in the last %s (the node history begins at %s)\n",
		of, o.last, begins.UTC().Format(time.DateTime+"Z"))
	return err
}
