package trace

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
)

// add gives attributes to a span.
func add(s *tracepb.Span, kvs ...attribute.KeyValue) {
	s.Attributes = append(s.Attributes, keyValues(kvs)...)
}

// fail marks a span as failed, and its call with it: error.type is where the status is
// Error, and nowhere else.
func fail(s *tracepb.Span, message, errorType string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	add(s, semconv.ErrorTypeKey.String(errorType))
}

func link(to oteltrace.SpanContext, why string) *tracepb.Span_Link {
	trace, span := to.TraceID(), to.SpanID()
	return &tracepb.Span_Link{
		TraceId: trace[:], SpanId: span[:], TraceState: to.TraceState().String(),
		Attributes: keyValues([]attribute.KeyValue{attr.Link(why)}),
	}
}

// nonZero leaves out what says nothing: zero, false, the empty string and the empty list.
func nonZero(kvs ...attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(kvs, func(kv attribute.KeyValue) bool {
		v := kv.Value
		return v.AsString() == "" && v.AsInt64() == 0 && v.AsFloat64() == 0 && !v.AsBool() && len(v.AsStringSlice()) == 0
	})
}

// keyValues converts attributes to OTLP. The SDK has the same, but does not export it.
func keyValues(kvs []attribute.KeyValue) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		out = append(out, &commonpb.KeyValue{Key: string(kv.Key), Value: value(kv.Value)})
	}
	return out
}

func value(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.STRINGSLICE:
		list := &commonpb.ArrayValue{}
		for _, s := range v.AsStringSlice() {
			list.Values = append(list.Values, value(attribute.StringValue(s)))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.String()}}
}
