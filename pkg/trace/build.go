// Package trace maps judged operations to OTLP spans. It is pure: the same operation gives the same bytes and ids.
package trace

import (
	"cmp"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// Build returns the spans of one operation, parents before children.
func (b *Builder) Build(op *model.Operation, j *judge.Judgement) Trace {
	w := b.writer(op, j)
	for _, call := range op.Calls {
		w.call(call)
	}
	return w.finish(op.Runtime)
}

// place puts a call below the recorded span of its environment, else below the operation's root span.
func (w *writer) place(call *model.Call) (at, []*tracepb.Span_Link) {
	if where, ok := recorded(call.Trace); ok {
		where.state = replaced(where.state, w.j.TraceState)
		return where, nil
	}
	var links []*tracepb.Span_Link
	if above := w3c.Parse(call.Trace); above.Unsampled() {
		links = append(links, link(above.SpanContext, "parent was not sampled"))
	}
	return at{trace: w.own, parent: w.operation(), state: w.j.TraceState}, links
}

// replaced keeps a parent's other entries and randomness.
func replaced(state, entry string) string {
	key, value, ok := strings.Cut(entry, "=")
	all, err := oteltrace.ParseTraceState(state)
	if strings.Contains(all.Get(key), "rv:") {
		return state
	}
	if ok && err == nil {
		all, err = all.Insert(key, value)
	}
	if !ok || err != nil {
		return state
	}
	return all.String()
}

func (w *writer) operation() oteltrace.SpanID {
	if w.root.IsValid() {
		return w.root
	}
	w.root = w.ids.operation(w.op.Key())
	name := "pod network " + string(w.op.Kind)
	if w.op.Kind == model.Other {
		name = "pod network check"
	}
	start := w.op.Start // another CPU's run may have begun earlier
	for _, call := range w.op.Calls {
		start = min(start, call.Start)
	}
	s := w.span(at{trace: w.own, state: w.j.TraceState}, w.root, name, start, w.op.End, attr.KindOperation)
	add(s, aboutSandbox(w.op)...)
	s.Links = w.before()
	if w.op.Sandbox != nil {
		if nri := w3c.Parse(w.op.Sandbox.Trace); nri.IsValid() {
			s.Links = append(s.Links, link(nri.SpanContext, "NRI call"))
		}
	}
	for _, call := range w.op.Calls {
		if failure := w.j.Calls[call].Failure; failure != "" {
			fail(s, failure, callErrorType(call, w.j.Calls[call].Failed))
		}
	}
	return w.root
}

func (w *writer) call(call *model.Call) {
	where, links := w.place(call)
	verdict := w.j.Calls[call]
	where.attributes = appendAll(nil, inSpan, nonZero(attr.CNIIfName(call.IfName), attr.CNIName(call.Network))...)
	id := w.ids.call(where.trace, call.Runs[0].Process, call.Start)
	s := w.span(where, id, "CNI "+cmp.Or(call.Command, "call"), call.Start, call.End, attr.KindCall)
	s.Links = links
	add(s, aboutTime(verdict)...)
	add(s, aboutLoss(w.op)...)
	if where.remote {
		add(s, aboutSandbox(w.op)...)
		s.Links = append(s.Links, w.before()...)
	}
	add(s, aboutConcurrency(call)...)
	if first := call.First; first != nil {
		add(s, after(call.End, first.At))
		w.happened(s, "first connection", first.At, ends(first.Local, first.Remote)...)
	}
	if call.Hung {
		s.Links = append(s.Links, w.hungLink(call, where))
	}
	add(s, nonZero(
		attr.NetNSPath(call.NetNS), attr.CNIID(w.op.ContainerID), attr.CNIPath(call.NetNS), attr.Hung(call.Hung),
	)...)
	if verdict.Slow > 0 {
		w.slow(s, verdict.Slow, call.End)
	}
	if verdict.Failure != "" {
		add(s, attr.Failed(true)) // backends differ in searching a status
		fail(s, verdict.Failure, callErrorType(call, verdict.Failed))
		if verdict.Failed != nil {
			add(s, aboutError(verdict.Failed.Run)...)
			add(s, attr.FailedPlugin(verdict.Failed.Run.Plugin))
		}
	}
	add(s, nonZero(attr.NeverRun(call.NeverRun...), attr.Reduced(w.j.Reduced), attr.Baggage(members(call.Baggage)...))...)
	w.trace.IDs[call] = where.trace
	if w.j.Reduced {
		return
	}
	for _, run := range call.Runs {
		w.image(where.under(s), run, nil, verdict.Failure != "")
	}
}

func (w *writer) hungLink(call *model.Call, where at) *tracepb.Span_Link {
	trace := where.trace
	if call.Told {
		trace = w.own
	}
	return link(spanContext(trace, w.ids.hung(trace, call.Runs[0].Process, call.Start)), "it hung")
}

func (w *writer) before() (links []*tracepb.Span_Link) {
	for _, b := range w.op.Before {
		links = append(links, link(w.ids.of(b.Key), b.Why))
	}
	if s := w.op.Sandbox; s != nil { // a pod's author writes it: never a parent
		if pod := w3c.Parse(event.TraceContext{Parent: s.Annotations[event.PodTraceparent]}); pod.IsValid() {
			links = append(links, link(pod.SpanContext, "pod annotation"))
		}
	}
	return links
}
