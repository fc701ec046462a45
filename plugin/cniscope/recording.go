package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
)

// replayed is a recording that was judged.
type replayed struct {
	results []pipeline.Result // in the order in which the operations began
	skipped int               // events of a kind that this version does not know
	// truncated is why not all could be read; nil if all was.
	truncated error
}

// load reads a recording and judges it, by its own thresholds or by those of --config.
func (o showOptions) load(ctx context.Context, path string) (*replayed, error) {
	reader, err := openRecording(path)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	s, err := settingsIn(reader.Header())
	if err != nil {
		return nil, err
	}
	if o.options != "" {
		options, err := config.Load(o.options)
		if err != nil {
			return nil, err
		}
		s.Judge = judgeOf(options)
	}
	s.Judge.All, s.Judge.PerSecond = true, 0 // whoever records wants to see it

	results, err := replay(ctx, reader, s)
	var truncated *record.TruncatedError
	if err != nil && !errors.As(err, &truncated) {
		return nil, err
	}
	slices.SortStableFunc(results, func(a, b pipeline.Result) int {
		return cmp.Compare(a.Operation.Start, b.Operation.Start)
	})
	return &replayed{results: results, skipped: int(reader.Skipped()), truncated: err}, nil
}

// tell says what could not be read.
func (r *replayed) tell(diagnostics io.Writer) {
	if r.truncated != nil {
		fmt.Fprintf(diagnostics, "cniscope: %v; what is whole is shown\n", r.truncated)
	}
	if r.skipped > 0 {
		fmt.Fprintf(diagnostics, "cniscope: %d events of a kind this version does not know were left out\n", r.skipped)
	}
}

// operations are the spans of those that have any.
func (r *replayed) operations() iter.Seq[*tracepb.ResourceSpans] {
	return func(yield func(*tracepb.ResourceSpans) bool) {
		for _, result := range r.results {
			if result.Trace.Spans != nil && !yield(result.Trace.Spans) {
				return
			}
		}
	}
}
