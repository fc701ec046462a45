package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
)

func add(s *tracepb.Span, kvs ...attribute.KeyValue) { attach(s, inSpan, kvs...) }

func fail(s *tracepb.Span, message, errorType string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	add(s, semconv.ErrorTypeKey.String(errorType))
}

func link(to oteltrace.SpanContext, why string) *tracepb.Span_Link {
	trace, span := to.TraceID(), to.SpanID()
	l := &tracepb.Span_Link{TraceId: trace[:], SpanId: span[:], TraceState: to.TraceState().String()}
	attach(l, inLink, attr.Link(why))
	return l
}

func nonZero(kvs ...attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(kvs, func(kv attribute.KeyValue) bool {
		v := kv.Value
		return v.AsString() == "" && v.AsInt64() == 0 && v.AsFloat64() == 0 && !v.AsBool() && len(v.AsStringSlice()) == 0
	})
}

// Field numbers of attributes (opentelemetry/proto/trace/v1/trace.proto, resource/v1/resource.proto).
const (
	inResource protowire.Number = 1
	inEvent    protowire.Number = 3
	inLink     protowire.Number = 4
	inSpan     protowire.Number = 9
)

// attach adds attributes, encoded: as messages they cost twice as much.
func attach(to proto.Message, field protowire.Number, kvs ...attribute.KeyValue) {
	m := to.ProtoReflect()
	all := m.GetUnknown()
	if all == nil {
		all = make([]byte, 0, 40*len(kvs))
	}
	m.SetUnknown(appendAll(all, field, kvs...))
}

func appendAll(b []byte, field protowire.Number, kvs ...attribute.KeyValue) []byte {
	var room [256]byte
	for _, kv := range kvs {
		b = appendOne(b, field, kv.Key, appendValue(room[:0], kv.Value))
	}
	return b
}

func appendOne(b []byte, field protowire.Number, key attribute.Key, value []byte) []byte {
	size := protowire.SizeTag(1) + protowire.SizeBytes(len(key)) + protowire.SizeTag(2) + protowire.SizeBytes(len(value))
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), string(key))
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), value)
}

type pair struct {
	whole             []byte
	from, to, valueAt int
}

func (p *pair) key() []byte               { return p.whole[p.from:p.to] }
func (p *pair) value() []byte             { return p.whole[p.valueAt:] }
func (p *pair) is(key attribute.Key) bool { return string(p.key()) == string(key) }

func attached(to proto.Message) []pair {
	raw := to.ProtoReflect().GetUnknown()
	all := make([]pair, 0, len(raw)/36)
	for len(raw) > 0 {
		field := func(at int) (from, to int) {
			size, n := protowire.ConsumeVarint(raw[at+1:])
			return at + 1 + n, at + 1 + n + int(size)
		}
		pairAt, end := field(0)
		from, to := field(pairAt)
		valueAt, _ := field(to)
		all = append(all, pair{raw[:end], from, to, valueAt})
		raw = raw[end:]
	}
	return all
}

// appendValue encodes an AnyValue (opentelemetry/proto/common/v1/common.proto).
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		all, size := v.AsStringSlice(), 0
		one := func(s string) int { return protowire.SizeTag(1) + protowire.SizeBytes(len(s)) }
		for i, s := range all {
			all[i] = strings.ToValidUTF8(s, "\ufffd")
			size += protowire.SizeTag(1) + protowire.SizeBytes(one(all[i]))
		}
		b = protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.BytesType), uint64(size))
		for _, s := range all {
			b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.BytesType), uint64(one(s)))
			b = appendText(b, s)
		}
		return b
	}
	return appendText(b, strings.ToValidUTF8(v.String(), "\ufffd"))
}

func appendText(b []byte, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), s)
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
