// Package trace maps judged operations to OTLP spans: names, attributes, parents. It
// is pure: the same operation gives the same spans, byte for byte, ids included.
package trace

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// Scope is the instrumentation scope of every span.
const Scope = "github.com/cniscope/cniscope"

// Builder makes spans. It remembers which span names it has given out, so
// operations must come to it one after another.
type Builder struct {
	ids      IDs
	resource []attribute.KeyValue
	version  string
	names    text.Names // span names are few: the backend indexes them
	requests text.Names // those of requests to the kernel
}

// NewBuilder returns a builder whose spans come from resource and from this version of
// cniscope.
func NewBuilder(ids IDs, resource []attribute.KeyValue, version string) *Builder {
	return &Builder{ids: ids, resource: resource, version: version}
}

// Trace is an operation as spans.
type Trace struct {
	Spans *tracepb.ResourceSpans
	// IDs are the trace ids of the operation's calls, by call.
	IDs map[*timeline.Call]oteltrace.TraceID
	// ID is the trace id of a mark that a call hangs.
	ID oteltrace.TraceID
}

// Build returns the spans of one operation, parents before children.
func (b *Builder) Build(op *timeline.Operation, j *judge.Judgement) Trace {
	w := &writer{
		Builder: b, op: op, j: j,
		trace:  Trace{IDs: map[*timeline.Call]oteltrace.TraceID{}},
		own:    b.ids.trace(op.Key()),
		common: keyValues(identity(op)),
	}
	for _, call := range op.Calls {
		w.call(call)
	}
	w.finish(op.Runtime)
	return w.trace
}

// finish puts the spans into their envelope.
func (w *writer) finish(runtime event.Runtime) {
	w.trace.Spans = &tracepb.ResourceSpans{
		SchemaUrl: semconv.SchemaURL,
		Resource:  &resourcepb.Resource{Attributes: keyValues(slices.Concat(w.resource, runtimeOf(runtime)))},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: Scope, Version: w.version},
			Spans: w.spans,
		}},
	}
}

// writer is the state of one Build.
type writer struct {
	*Builder
	op     *timeline.Operation
	j      *judge.Judgement
	trace  Trace
	own    oteltrace.TraceID    // for what nothing is above
	common []*commonpb.KeyValue // of every span; shared, since nobody changes them
	spans  []*tracepb.Span
	root   oteltrace.SpanID
}

// at is where a span hangs.
type at struct {
	trace  oteltrace.TraceID
	parent oteltrace.SpanID
	state  string
	// remote: somebody else made the parent.
	remote bool
	// attributes that everything below a call has; shared.
	attributes []*commonpb.KeyValue
}

// place finds a call's parent: the span that its environment names, if that one is
// recorded; else the operation, as a root of our own.
func (w *writer) place(call *timeline.Call) (at, []*tracepb.Span_Link) {
	above := w3c.Parse(call.Trace)
	if above.Recorded() {
		return under(above), nil
	}
	var links []*tracepb.Span_Link
	if above.Unsampled() {
		links = append(links, link(above.SpanContext, "parent was not sampled"))
	}
	return at{trace: w.own, parent: w.operation()}, links
}

// under is below a span that somebody else made.
func under(p w3c.Parent) at {
	return at{trace: p.TraceID(), parent: p.SpanID(), state: p.TraceState().String(), remote: true}
}

// operation makes the root span, once.
func (w *writer) operation() oteltrace.SpanID {
	if w.root.IsValid() {
		return w.root
	}
	w.root = w.ids.operation(w.op.Key())
	name := "pod network " + string(w.op.Kind)
	if w.op.Kind == timeline.Other {
		name = "pod network check"
	}
	s := w.span(at{trace: w.own}, w.root, name, w.op.Start, w.op.End, attr.KindOperation)
	s.Attributes = append(s.Attributes, keyValues(aboutSandbox(w.op))...)
	s.Links = w.before()
	if w.op.Sandbox != nil {
		if nri := w3c.Parse(w.op.Sandbox.Trace); nri.IsValid() {
			s.Links = append(s.Links, link(nri.SpanContext, "NRI call"))
		}
	}
	for _, call := range w.op.Calls {
		if failure := w.j.Calls[call].Failure; failure != "" {
			fail(s, failure, errorType(w.j.Calls[call].Failed))
		}
	}
	return w.root
}

func (w *writer) call(call *timeline.Call) {
	where, links := w.place(call)
	verdict := w.j.Calls[call]
	id := w.ids.call(where.trace, call.Runs[0].Process, call.Start)
	s := w.span(where, id, "CNI "+call.Command, call.Start, call.End, attr.KindCall)
	s.Links = links
	below := at{trace: where.trace, parent: id, state: where.state, attributes: keyValues(aboutCall(call))}
	s.Attributes = append(s.Attributes, below.attributes...)
	s.Attributes = append(s.Attributes, keyValues(aboutTime(verdict))...)
	s.Attributes = append(s.Attributes, keyValues(aboutLoss(w.op))...)
	if where.remote {
		s.Attributes = append(s.Attributes, keyValues(aboutSandbox(w.op))...)
		s.Links = append(s.Links, w.before()...)
	}
	s.Attributes = append(s.Attributes, keyValues(aboutInsides(call))...)
	w.firstConnection(s, call)
	if call.NetNS != "" {
		s.Attributes = append(s.Attributes, keyValue(attr.NetNSPath(call.NetNS)))
	}
	if call.Hung {
		s.Links = append(s.Links, w.hungLink(call, where))
		s.Attributes = append(s.Attributes, keyValue(attr.Hung(true)))
	}
	if verdict.Slow > 0 {
		w.slow(s, verdict.Slow, call.End)
	}
	if verdict.Failure != "" {
		s.Attributes = append(s.Attributes, keyValue(attr.Failed(true))) // backends differ in how a status is searched
		fail(s, verdict.Failure, errorType(verdict.Failed))
		if verdict.Failed != nil {
			s.Attributes = append(s.Attributes, keyValues(aboutError(verdict.Failed.Run))...)
			s.Attributes = append(s.Attributes, keyValue(attr.FailedPlugin(verdict.Failed.Run.Plugin)))
		}
	}
	if len(call.NeverRun) > 0 {
		s.Attributes = append(s.Attributes, keyValue(attr.NeverRun(call.NeverRun...)))
	}
	w.trace.IDs[call] = where.trace
	if w.j.Reduced {
		s.Attributes = append(s.Attributes, keyValue(attr.Reduced(true)))
		return
	}
	for _, run := range call.Runs {
		w.image(below, run, nil, verdict.Failure != "")
	}
}

// image makes the span of one image and of what is below it. run is the plugin it
// belongs to; failing says that its call failed.
func (w *writer) image(where at, im, run *timeline.Image, failing bool) {
	kind, name := attr.KindCommand, w.names.Limit(im.Name, "command")
	if im.Run != nil {
		kind = attr.KindRun
		if run != nil {
			kind = attr.KindDelegate
		}
		run = im
		name = w.names.Limit(im.Run.Plugin, "plugin") + " " + im.Run.Command
	}
	id := w.ids.span(where.trace, string(im.Process), im.Start)
	s := w.span(where, id, name, im.Start, im.End, kind)
	s.Attributes = append(s.Attributes, where.attributes...)
	s.Attributes = append(s.Attributes,
		keyValue(attr.CNICommand(run.Run.Command)),
		keyValue(attr.CNIPlugin(run.Run.Plugin)))
	s.Attributes = append(s.Attributes, keyValues(aboutProcess(im))...)
	s.Attributes = append(s.Attributes, keyValues(aboutInside(im))...)
	s.Links = append(s.Links, w.perhaps(im.Attribution)...)
	if limit, slow := w.j.Slow[im]; slow {
		w.slow(s, limit, im.End)
	}
	// Status Error means that the call failed. `iptables -C` exits 1 in every healthy
	// ADD; SIGPIPE ends every writer whose reader has read enough.
	died := im.Signal != "" && im.Signal != "SIGPIPE"
	if im.Failed() && (died || failing && judge.Fails(run)) || im.Run != nil && failing && judge.Fails(im) {
		fail(s, judge.Describe(im), errorType(im))
	}
	below := where
	below.parent, below.remote = id, false
	w.inside(s, below, im, run, failing)
	for _, child := range im.Children {
		w.image(below, child, run, failing)
	}
}

// slow marks a span: as attributes for searching, as an event for reading.
func (w *writer) slow(s *tracepb.Span, limit time.Duration, end int64) {
	attributes := []attribute.KeyValue{
		attr.Slow(true),
		attr.SlowThresholdMS(limit),
	}
	s.Attributes = append(s.Attributes, keyValues(attributes)...)
	s.Events = append(s.Events, &tracepb.Span_Event{
		Name: "slow", TimeUnixNano: w.wall(end), Attributes: keyValues(attributes[1:]),
	})
}

// usual is how many attributes a span of a plugin or a command has.
const usual = 24

// span appends a span with what every span has.
func (w *writer) span(where at, id oteltrace.SpanID, name string, start, end int64, kind string) *tracepb.Span {
	s := &tracepb.Span{
		TraceId: where.trace[:], SpanId: id[:], TraceState: where.state, Name: name,
		Kind:              tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: w.wall(start), EndTimeUnixNano: w.wall(max(start, end)),
		Flags:      uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | uint32(oteltrace.FlagsSampled),
		Attributes: make([]*commonpb.KeyValue, 0, usual),
	}
	s.Attributes = append(append(s.Attributes, keyValue(attr.Kind(kind))), w.common...)
	if where.parent.IsValid() {
		s.ParentSpanId = where.parent[:]
	}
	if where.remote {
		s.Flags |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	w.spans = append(w.spans, s)
	return s
}

// before links to what the operation follows on: the setup of a sandbox that is torn down,
// the attempt before this one.
func (w *writer) before() (links []*tracepb.Span_Link) {
	for _, b := range w.op.Before {
		links = append(links, link(w.ids.of(b.Key), b.Why))
	}
	return links
}

// wall puts a monotonic instant on the calendar, by the operation's one anchor.
func (w *writer) wall(mono int64) uint64 { return uint64(w.op.Wall + mono - w.op.Mono) }

func link(to oteltrace.SpanContext, why string) *tracepb.Span_Link {
	trace, span := to.TraceID(), to.SpanID()
	return &tracepb.Span_Link{
		TraceId: trace[:], SpanId: span[:], TraceState: to.TraceState().String(),
		Attributes: keyValues([]attribute.KeyValue{attr.Link(why)}),
	}
}

// fail says that a span's part of a call failed, or made it fail: error.type is where the
// status is Error, and nowhere else.
func fail(s *tracepb.Span, message, errorType string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	s.Attributes = append(s.Attributes, keyValue(semconv.ErrorTypeKey.String(errorType)))
}

// errorType is a word of few: an exit code, a signal, or what else failed the call.
func errorType(im *timeline.Image) string {
	switch {
	case im == nil:
		return "never run"
	case im.Signal != "":
		return im.Signal
	case im.Code == 0: // by what it wrote, which is no answer
		return "invalid result"
	}
	return fmt.Sprint(im.Code)
}
