package trace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/test/harness"
)

// encodesAsProto panics if the bytes are not protobuf's, so that a field is not forgotten.
func encodesAsProto(all Trace) {
	got, err := all.Encoded()
	want, fails := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{all.Spans}})
	if !bytes.Equal(got, want) || (err != nil) != (fails != nil) {
		panic(fmt.Sprintf("%v, protobuf says %v: %x, not %x", err, fails, got, want))
	}
}

func TestEveryKindOfValueIsEncodedAsProtobufDoes(t *testing.T) {
	values := []attribute.KeyValue{
		attribute.String("", ""), attribute.Bool("b", false), attribute.Bool("b", true),
		attribute.Int("i", -1), attribute.Int("i", 0), attribute.Float64("f", 0), attribute.Float64("f", -1.5),
		attribute.StringSlice("s", nil),
		attribute.StringSlice("s", []string{"", strings.Repeat("x", 1<<14)}),
	}
	s := &tracepb.Span{Status: &tracepb.Status{}, Links: []*tracepb.Span_Link{{}, link(oteltrace.SpanContext{}, "why")}}
	add(s, values...)
	for _, spans := range [][]*tracepb.Span{nil, {s}, {s, {}, s}} {
		encodesAsProto(Of(&tracepb.ResourceSpans{
			Resource: &resourcepb.Resource{Attributes: s.Attributes}, SchemaUrl: "a",
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{}, Spans: spans}},
		}))
	}
	encodesAsProto(Of(&tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{}}}))
	for _, s := range []*tracepb.Span{{Name: "\xff"}, {Attributes: keyValues(nil, attribute.String("a", "\xff"))}} {
		all := Of(&tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{s}}}})
		if _, err := all.Encoded(); err == nil {
			t.Errorf("%v has no error", s)
		}
	}
}

// The history and each destination take the same bytes.
func TestSpansAreEncodedOnce(t *testing.T) {
	all := Of(&tracepb.ResourceSpans{SchemaUrl: "a"})
	first := harness.Must(all.Encoded())(t)
	again, _ := all.Encoded()
	var got tracepb.TracesData
	harness.Check(t, proto.Unmarshal(first, &got))
	if &first[0] != &again[0] || cap(first) != len(first) || got.ResourceSpans[0].SchemaUrl != "a" {
		t.Errorf("%v, with room for %d bytes; the second time at %p, not %p", &got, cap(first)-len(first), again, first)
	}
}
