package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
)

func (q question) calls(ctx context.Context, node control.Reader, out io.Writer) error {
	all, err := node.Calls(ctx)
	if err != nil {
		return err
	}
	seen := slices.DeleteFunc(all, func(c control.Call) bool {
		return q.namespace != "" && c.Namespace != q.namespace || q.pod != "" && c.Pod != q.pod
	})
	return printed(out, struct {
		Schema string         `json:"schema"`
		Calls  []control.Call `json:"calls"`
	}{"cniscope.dev/ps/v1", seen}, nil)
}

func (q question) operations(ctx context.Context, node control.Reader, out io.Writer) error {
	found, err := node.Operations(ctx, q.query())
	if err != nil {
		return err
	}
	return printed(out, struct {
		Schema string `json:"schema"`
		control.Operations
	}{"cniscope.dev/operations/v1", found}, nil)
}

func (q question) query() control.Query {
	query := control.Query{
		Namespace: q.namespace, Pod: q.pod, Problems: q.problems, After: q.after, Limit: q.limit,
		Wait: min(q.wait, control.MaxWait),
	}
	if q.since > 0 {
		query.Since = time.Now().Add(-q.since)
	}
	return query
}

func (q question) spans(ctx context.Context, node control.Reader, out io.Writer) error {
	encoded, err := node.Spans(ctx, q.trace)
	if err != nil {
		return err
	}
	if q.format == fleet.Protobuf {
		return raw(out, encoded, nil)
	}
	var spans tracepb.TracesData
	if err := proto.Unmarshal(encoded, &spans); err != nil {
		return fmt.Errorf("read the spans that cniscope remembers: %w", err)
	}
	encoded, err = otlpjson.Lines(spans.ResourceSpans)
	return raw(out, encoded, err)
}

func (q question) record(ctx context.Context, node control.Reader, out io.Writer) error {
	recording, err := node.Record(ctx, min(q.recording, control.MaxRecord))
	if err != nil {
		return err
	}
	defer recording.Close()
	_, err = io.Copy(out, recording)
	return err
}
