package show

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
)

// span is a test's span; from and to are milliseconds after its operation's start.
type span struct {
	kind, name string
	ifname     string
	from, to   float64
	about      []attribute.KeyValue
	failed     string
	below      []span
}

func operation(pod string, calls ...span) *tracepb.ResourceSpans {
	b := &builder{pod: pod}
	for _, call := range calls {
		b.add(call, nil)
	}
	return &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: b.spans}}}
}

type builder struct {
	pod   string
	spans []*tracepb.Span
}

func (b *builder) add(s span, parent []byte) {
	start := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	at := func(ms float64) uint64 { return uint64(start.Add(time.Duration(ms * 1e6)).UnixNano()) }
	id := binary.BigEndian.AppendUint64(nil, uint64(crc32.ChecksumIEEE([]byte(b.pod)))<<20|uint64(len(b.spans)+1))
	namespace, name, _ := strings.Cut(b.pod, "/")
	about := append([]attribute.KeyValue{
		attribute.String("cniscope.kind", s.kind), attribute.String("k8s.namespace.name",
			namespace), attribute.String("k8s.pod.name", name),
	}, s.about...)
	if s.kind == "call" {
		about = append(about, attribute.String("cni.ifname", cmp.Or(s.ifname, "eth0")),
			attribute.String("cni.command", "ADD"))
	}
	out := &tracepb.Span{
		TraceId: make([]byte, 16), SpanId: id, ParentSpanId: parent, Name: s.name,
		StartTimeUnixNano: at(s.from), EndTimeUnixNano: at(s.to), Attributes: protobuf(about),
	}
	if s.failed != "" {
		out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.failed}
	}
	b.spans = append(b.spans, out)
	for _, child := range s.below {
		b.add(child, id)
	}
}

func protobuf(kvs []attribute.KeyValue) (all []*commonpb.KeyValue) {
	for _, kv := range kvs {
		v := &commonpb.AnyValue{}
		switch kv.Value.Type() {
		case attribute.STRING:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: kv.Value.AsString()}
		case attribute.BOOL:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: kv.Value.AsBool()}
		case attribute.INT64:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		case attribute.FLOAT64:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: kv.Value.AsFloat64()}
		default:
			panic(kv.Value.Type())
		}
		all = append(all, &commonpb.KeyValue{Key: string(kv.Key), Value: v})
	}
	return all
}

// add is a call of bridge with the given duration and content.
func add(ms float64, below ...span) span {
	bridge := span{
		kind: "run", name: "bridge ADD", to: ms,
		about: []attribute.KeyValue{attribute.String("cni.command", "ADD")}, below: below,
	}
	return span{kind: "call", name: "CNI ADD", to: ms, below: []span{bridge}}
}

func run(name string, from, to float64) span {
	return span{kind: "command", name: name, from: from, to: to}
}

func runs(n int, name string, each float64) (all []span) {
	for i := range n {
		all = append(all, run(name, float64(i)*each, float64(i+1)*each))
	}
	return all
}

func collected(calls ...span) *Sample { return Collect(pods(calls...)) }

func pods(calls ...span) iter.Seq[*tracepb.ResourceSpans] {
	var all []*tracepb.ResourceSpans
	for i, call := range calls {
		all = append(all, operation(fmt.Sprintf("shop/web-%d", i), call))
	}
	return slices.Values(all)
}

func (s span) with(about ...attribute.KeyValue) span {
	s.about = append(slices.Clone(s.about), about...)
	return s
}

func (s span) failing(message string) span {
	s.failed = message
	return s
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	harness.Equal(t, strings.TrimSpace(got), strings.TrimSpace(want))
}
