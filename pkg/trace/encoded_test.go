package trace

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/test/harness"
)

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

func TestAttributesAreReadAsTheyWereAdded(t *testing.T) {
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	list := &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text("a"), text("")}}
	s := &tracepb.Span{}
	add(s, attribute.Bool("a", false), attribute.Int("b", -1), attribute.Float64("c", 0.5), attribute.String("d", "\xff"))
	add(s, attribute.StringSlice("e", []string{"a", ""}))
	read(s)
	want := []*commonpb.KeyValue{
		{Key: "a", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{}}},
		{Key: "b", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: -1}}},
		{Key: "c", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}},
		{Key: "d", Value: text("\ufffd")},
		{Key: "e", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}},
	}
	if !proto.Equal(s, &tracepb.Span{Attributes: want}) {
		t.Error(s)
	}
}
