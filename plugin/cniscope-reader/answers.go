package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/access"
)

// calls answers as `cniscope ps --format json` does.
func (q question) calls(ctx context.Context, node control.Reader, viewer access.Viewer, out io.Writer) error {
	all, err := node.Calls(ctx)
	if err != nil {
		return err
	}
	seen := slices.DeleteFunc(viewer.Calls(all), func(c control.Call) bool {
		return q.namespace != "" && c.Namespace != q.namespace || q.pod != "" && c.Pod != q.pod
	})
	return printed(out, struct {
		Schema string         `json:"schema"`
		Calls  []control.Call `json:"calls"`
	}{"cniscope.dev/ps/v1", seen}, nil)
}

// operations answers with what is remembered, and withholds what is somebody else's.
func (q question) operations(ctx context.Context, node control.Reader, viewer access.Viewer, out io.Writer) error {
	found, err := node.Operations(ctx, q.query())
	if err != nil {
		return err
	}
	return printed(out, viewer.Operations(found), nil)
}

func (q question) query() control.Query {
	query := control.Query{Namespace: q.namespace, Pod: q.pod, Problems: q.problems, After: q.after, Limit: q.limit, Wait: min(q.wait, control.MaxWait)}
	if q.since > 0 {
		query.Since = time.Now().Add(-q.since)
	}
	return query
}

// spans answers with the spans of one operation of a pod that the viewer may see.
func (q question) spans(ctx context.Context, node control.Reader, viewer access.Viewer, out io.Writer) error {
	if viewer.Operator {
		spans, err := node.Spans(ctx, q.trace)
		return raw(out, spans, err)
	}
	// The line says whose operation it is, not the spans.
	own, err := node.Operations(ctx, control.Query{Namespace: viewer.Namespace})
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(own.Operations, func(l control.Line) bool { return l.TraceID != q.trace || !viewer.Sees(l.Namespace) })
	if len(lines) == 0 {
		return fmt.Errorf("%w: no pod of namespace %s has the trace %s", control.ErrNotRemembered, viewer.Namespace, q.trace)
	}
	spans, err := node.Spans(ctx, q.trace)
	if err != nil {
		return err
	}
	seen, err := viewer.Spans(spans, lines)
	return raw(out, seen, err)
}

func (q question) record(ctx context.Context, node control.Reader, out io.Writer) error {
	recording, err := node.Record(ctx, control.RecordQuery{For: min(q.recording, control.MaxRecord), Namespace: q.namespace, Pod: q.pod})
	if err != nil {
		return err
	}
	defer recording.Close()
	_, err = io.Copy(out, recording)
	return err
}
