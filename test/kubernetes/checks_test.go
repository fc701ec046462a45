//go:build linux

package kubernetes

import (
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
)

// The checks of a trace find mistakes in a root from 0 to 100 with one more span.
func TestWhatIsWrongWithATraceIsFound(t *testing.T) {
	mark := func(key string) []*commonpb.KeyValue {
		return []*commonpb.KeyValue{{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}}}
	}
	root := &tracepb.Span{SpanId: []byte{1}, Name: "root", EndTimeUnixNano: 100}
	for name, c := range map[string]struct {
		span             *tracepb.Span
		orphans, outside int
	}{
		"a child within":               {&tracepb.Span{ParentSpanId: []byte{1}, EndTimeUnixNano: 100}, 0, 0},
		"a child that ends too late":   {&tracepb.Span{ParentSpanId: []byte{1}, EndTimeUnixNano: 101}, 0, 1},
		"a marked one":                 {&tracepb.Span{ParentSpanId: []byte{1}, EndTimeUnixNano: 101, Attributes: mark("cniscope.outlived")}, 0, 0},
		"one that is marked otherwise": {&tracepb.Span{ParentSpanId: []byte{1}, EndTimeUnixNano: 101, Attributes: mark("cniscope.slow")}, 0, 1},
		"a server of no client":        {&tracepb.Span{ParentSpanId: []byte{1}, EndTimeUnixNano: 101, Kind: tracepb.Span_SPAN_KIND_SERVER}, 0, 1},
		"an orphan":                    {&tracepb.Span{ParentSpanId: []byte{9}, EndTimeUnixNano: 50}, 1, 0},
		"another root":                 {&tracepb.Span{EndTimeUnixNano: 500}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.span.SpanId = []byte{2}
			got := newTrace("", []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{root, c.span}}}}})
			if len(got.orphans) != c.orphans || len(got.outside()) != c.outside {
				t.Errorf("orphans %v, outside %v", got.orphans, got.outside())
			}
		})
	}
	for name, c := range map[string]struct {
		start   uint64
		kind    tracepb.Span_SpanKind
		outside int
	}{
		"a server that ends after its client":    {10, tracepb.Span_SPAN_KIND_SERVER, 0},
		"a server that begins before its client": {9, tracepb.Span_SPAN_KIND_SERVER, 1},
		"a child of a client":                    {10, tracepb.Span_SPAN_KIND_INTERNAL, 1},
	} {
		got := newTrace("", []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{
			{SpanId: []byte{1}, StartTimeUnixNano: 10, EndTimeUnixNano: 20, Kind: tracepb.Span_SPAN_KIND_CLIENT},
			{SpanId: []byte{2}, ParentSpanId: []byte{1}, StartTimeUnixNano: c.start, EndTimeUnixNano: 21, Kind: c.kind},
		}}}}}).outside()
		harness.Equal(t, len(got), c.outside, name)
	}
}
