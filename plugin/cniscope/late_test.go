package main

import (
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

func spansOf(names ...string) trace.Trace {
	all := &tracepb.ScopeSpans{}
	for _, name := range names {
		all.Spans = append(all.Spans, &tracepb.Span{Name: name})
	}
	return trace.Trace{Spans: &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{all}}}
}

// In a recording, what came after an operation was over is drawn with it.
func TestWhatCameLaterIsDrawnWithItsOperation(t *testing.T) {
	one, other := &timeline.Operation{ContainerID: "c1"}, &timeline.Operation{ContainerID: "c2"}
	results := []pipeline.Result{{Operation: one, Trace: spansOf("one")}, {Operation: other, Trace: spansOf("other")}}
	late(results, pipeline.Result{
		Connected: &timeline.Connected{Flight: timeline.Flight{Operation: one.Key()}}, Trace: spansOf("first connection"),
	})
	for i, want := range []int{2, 1} {
		if got := len(results[i].Trace.Spans.ScopeSpans[0].Spans); got != want {
			t.Errorf("operation %d has %d spans, want %d", i, got, want)
		}
	}
}
