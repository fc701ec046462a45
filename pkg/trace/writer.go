package trace

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Scope is the instrumentation scope of every span.
const Scope = "github.com/cniscope/cniscope"

// Builder makes spans. Not for concurrent use.
type Builder struct {
	ids      IDs
	resource []attribute.KeyValue
	origin   event.Origin
	version  string
	names    text.Names // bounded, since backends index span names
	requests text.Names
}

// NewBuilder sets the spans' resource and cniscope's version.
func NewBuilder(ids IDs, resource []attribute.KeyValue, version string) *Builder {
	return &Builder{ids: ids, resource: resource, version: version}
}

// From sets the origin of later operations.
func (b *Builder) From(origin event.Origin) { b.origin = origin }

// Trace is an operation as spans, whose attributes are encoded (see Read). IDs are by call, ID is a mark's.
type Trace struct {
	Spans *tracepb.ResourceSpans
	IDs   map[*model.Call]oteltrace.TraceID
	ID    oteltrace.TraceID

	encode func() ([]byte, error)
}

// Of returns spans without ids.
func Of(spans *tracepb.ResourceSpans) Trace {
	return Trace{Spans: spans, encode: sync.OnceValues(func() ([]byte, error) {
		data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{spans}})
		return slices.Clip(data), err
	})}
}

// Encoded returns Spans as TracesData. Do not change it.
func (t Trace) Encoded() ([]byte, error) { return t.encode() }

// Read returns the spans with attributes.
func (t Trace) Read() *tracepb.ResourceSpans {
	data, _ := t.Encoded()
	all := &tracepb.TracesData{}
	_ = proto.Unmarshal(data, all)
	return all.ResourceSpans[0]
}

// Drawn is for structs that embed it.
func (t Trace) Drawn() Trace { return t }

type writer struct {
	*Builder
	op    *model.Operation
	j     *judge.Judgement
	trace Trace
	own   oteltrace.TraceID // for calls without a recorded parent
	spans []*tracepb.Span
	root  oteltrace.SpanID

	scratch []attribute.KeyValue
}

func (b *Builder) writer(op *model.Operation, j *judge.Judgement) *writer {
	return &writer{
		Builder: b, op: op, j: j,
		trace: Trace{IDs: map[*model.Call]oteltrace.TraceID{}},
		own:   b.ids.trace(op.Key()),
	}
}

func (w *writer) finish(runtime event.Runtime) Trace {
	resource := &resourcepb.Resource{}
	attach(resource, inResource, w.about(runtime)...)
	all := Of(&tracepb.ResourceSpans{
		SchemaUrl: semconv.SchemaURL,
		Resource:  resource,
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: Scope, Version: w.version},
			Spans: w.spans,
		}},
	})
	w.trace.Spans, w.trace.encode = all.Spans, all.encode
	return w.trace
}

// about returns the resource: the pod's attributes replace the operator's ([resource.attributes]).
func (w *writer) about(runtime event.Runtime) []attribute.KeyValue {
	pod := identity(w.op)
	known := map[attribute.Key]bool{}
	for _, kv := range pod {
		known[kv.Key] = true
	}
	node := slices.DeleteFunc(slices.Clone(w.resource), func(kv attribute.KeyValue) bool { return known[kv.Key] })
	source := nonZero(attr.Source(w.origin.Source), attr.SourceResolutionMS(time.Duration(w.origin.Resolution)))
	return slices.Concat(node, runtimeOf(runtime), source, pod)
}

// flagRandom says that a trace ID ends in 7 random bytes (W3C Trace Context Level 2, 3.2.2.5.2): ours are a hash.
const flagRandom = 1 << 1

func (w *writer) span(where at, id oteltrace.SpanID, name string, start, end int64, kind string) *tracepb.Span {
	const usual = 768 // bytes of attributes
	flags := uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | uint32(oteltrace.FlagsSampled)
	if where.trace == w.own && where.state != "" {
		flags |= flagRandom
	}
	ids := slices.Concat(where.trace[:], id[:], where.parent[:])
	s := &tracepb.Span{
		TraceId: ids[:16:16], SpanId: ids[16:24:24], TraceState: where.state, Name: name,
		Kind:              tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: w.wall(start), EndTimeUnixNano: w.wall(max(start, end)),
		Flags: flags,
	}
	about := appendAll(make([]byte, 0, usual), inSpan, attr.Kind(kind))
	s.ProtoReflect().SetUnknown(append(about, where.attributes...))
	if where.parent.IsValid() {
		s.ParentSpanId = ids[24:]
	}
	if where.remote {
		s.Flags |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	w.spans = append(w.spans, s)
	return s
}

func (w *writer) happened(s *tracepb.Span, name string, at int64, about ...attribute.KeyValue) {
	e := &tracepb.Span_Event{Name: name, TimeUnixNano: w.wall(at)}
	attach(e, inEvent, about...)
	s.Events = append(s.Events, e)
}

// slow marks a span twice: backends search the attribute, users read the event.
func (w *writer) slow(s *tracepb.Span, limit time.Duration, end int64) {
	add(s, attr.Slow(true), attr.SlowThresholdMS(limit))
	w.happened(s, "slow", end, attr.SlowThresholdMS(limit))
}

// linksMax bounds links: hundreds of calls have hundreds of actions each.
const linksMax = 32

func (w *writer) perhaps(a *model.Attribution) (links []*tracepb.Span_Link) {
	if a == nil {
		return nil
	}
	for _, other := range a.Others[:min(len(a.Others), linksMax)] {
		links = append(links, link(w.ids.of(other), "may be for this call"))
	}
	return links
}

func (w *writer) wall(mono int64) uint64 { return uint64(w.op.Wall + mono - w.op.Mono) }
