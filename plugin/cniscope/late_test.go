package main

import (
	"slices"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
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
	one, other := &model.Operation{ContainerID: "c1"}, &model.Operation{ContainerID: "c2"}
	k := &kept{}
	defer k.close()
	for _, r := range []pipeline.Result{
		&pipeline.Judged{Operation: one, Trace: spansOf("one")},
		&pipeline.Judged{Operation: other, Trace: spansOf("other")},
		&pipeline.Connected{Connected: model.Connected{Flight: model.Flight{Operation: one.Key()}}, Trace: spansOf("first connection")},
	} {
		harness.Check(t, k.keep(r))
	}
	harness.Check(t, k.seal())
	var got []int
	for spans := range k.operations() {
		got = append(got, len(spans.ScopeSpans[0].Spans))
	}
	if !slices.Equal(got, []int{2, 1}) {
		t.Errorf("operations of %d spans", got)
	}
}
