package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/text"
)

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
