package trace

import (
	"cmp"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
)

func add(s *tracepb.Span, kvs ...attribute.KeyValue) {
	s.Attributes = keyValues(s.Attributes, kvs...)
}

func fail(s *tracepb.Span, message, errorType string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	add(s, semconv.ErrorTypeKey.String(errorType))
}

func link(to oteltrace.SpanContext, why string) *tracepb.Span_Link {
	trace, span := to.TraceID(), to.SpanID()
	return &tracepb.Span_Link{
		TraceId: trace[:], SpanId: span[:], TraceState: to.TraceState().String(),
		Attributes: keyValues(nil, attr.Link(why)),
	}
}

func nonZero(kvs ...attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(kvs, func(kv attribute.KeyValue) bool {
		v := kv.Value
		return v.AsString() == "" && v.AsInt64() == 0 && v.AsFloat64() == 0 && !v.AsBool() && len(v.AsStringSlice()) == 0
	})
}

func keyValues(out []*commonpb.KeyValue, kvs ...attribute.KeyValue) []*commonpb.KeyValue {
	pairs := make([]struct {
		commonpb.KeyValue
		value commonpb.AnyValue
		text  commonpb.AnyValue_StringValue
	}, len(kvs))
	out = slices.Grow(out, len(kvs))
	for i, kv := range kvs {
		p := &pairs[i]
		p.Key, p.Value = string(kv.Key), &p.value
		if p.value.Value, p.text.StringValue = &p.text, kv.Value.AsString(); kv.Value.Type() != attribute.STRING {
			set(p.Value, kv.Value)
		}
		out = append(out, &p.KeyValue)
	}
	return out
}

func set(to *commonpb.AnyValue, v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		to.Value = &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}
	case attribute.INT64:
		to.Value = &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}
	case attribute.FLOAT64:
		to.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}
	case attribute.STRINGSLICE:
		texts := v.AsStringSlice()
		list := make([]*commonpb.AnyValue, len(texts))
		for i, s := range texts {
			list[i] = &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
		}
		to.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: list}}
	default:
		to.Value = &commonpb.AnyValue_StringValue{StringValue: v.String()}
	}
}

// Node has the resource attributes of every trace.
type Node struct {
	// May be empty.
	Name, Cluster string
	// As in Go's runtime package.
	Host, OS, Arch string
	// Instance is unique to a process.
	Instance, Version string
	// The operator's: they replace none but the service's name.
	Attributes map[string]string
}

// Resource returns the node's attributes.
func (n Node) Resource() []attribute.KeyValue {
	kvs := nonZero(
		semconv.ServiceName(cmp.Or(n.Attributes["service.name"], "cniscope")),
		semconv.ServiceVersion(n.Version),
		semconv.ServiceInstanceID(n.Instance),
		semconv.K8SNodeName(n.Name),
		semconv.K8SClusterName(n.Cluster),
		semconv.HostName(n.Host),
		semconv.OSTypeKey.String(n.OS),
		semconv.HostArchKey.String(n.Arch),
	)
	taken := map[string]bool{}
	for _, kv := range kvs {
		taken[string(kv.Key)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(n.Attributes)) {
		if !taken[key] {
			kvs = append(kvs, attribute.String(key, n.Attributes[key]))
		}
	}
	return kvs
}

func runtimeOf(r event.Runtime) []attribute.KeyValue {
	if r == (event.Runtime{}) {
		return nil
	}
	return []attribute.KeyValue{
		semconv.ContainerRuntimeName(cmp.Or(r.Name, "unknown")),
		semconv.ContainerRuntimeVersion(r.Version),
	}
}
