package trace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// Hung returns one span that says that a call is still under way at now. It hangs where
// the call will, whose own span links to it: a span that is sent at exit never appears if
// there is no exit.
func (b *Builder) Hung(f timeline.Flight, now int64) Trace {
	w, where := b.mark(f)
	s := w.span(where, b.ids.hung(where.trace, f.First, f.Start), "CNI "+f.Command+" hung", f.Start, now, attr.KindHung)
	s.Attributes = append(s.Attributes, keyValues(nonZero(
		attr.CNICommand(f.Command),
		attr.CNIIfName(f.IfName),
		attr.CNIPlugin(f.Plugin),
		semconv.ProcessCommand(f.Name),
	))...)
	s.Attributes = append(s.Attributes, keyValues([]attribute.KeyValue{
		semconv.ProcessPID(int(f.PID)),
		attr.Hung(true),
		attr.AgeMS(time.Duration(now - f.Start)),
	})...)
	w.finish(f.Runtime)
	w.trace.ID = where.trace
	return w.trace
}

// Connected returns one span from the end of an ADD to the first connection of its pod,
// which came when the ADD's spans had been sent. It hangs under the ADD's.
func (b *Builder) Connected(c timeline.Connected) Trace {
	w, where := b.mark(c.Flight)
	call := b.ids.call(where.trace, c.First, c.Start)
	where.parent, where.remote = call, false
	s := w.span(where, b.ids.span(where.trace, "first connection "+string(c.First), c.End), "first connection", c.End, c.At, attr.KindFirstConnection)
	s.Attributes = append(s.Attributes, keyValues(nonZero(
		attr.CNICommand(c.Command),
		attr.CNIIfName(c.IfName),
	))...)
	s.Attributes = append(s.Attributes, keyValue(after(c.End, c.At)))
	s.Attributes = append(s.Attributes, keyValues(ends(c.Local, c.Remote))...)
	w.finish(c.Runtime)
	w.trace.ID = where.trace
	return w.trace
}

// mark is a writer of a single span about a call, and what that call hangs under.
func (b *Builder) mark(f timeline.Flight) (*writer, at) {
	w := &writer{
		Builder: b, op: &timeline.Operation{Mono: f.Mono, Wall: f.Wall, Pod: f.Pod, ContainerID: f.ContainerID},
		trace: Trace{IDs: map[*timeline.Call]oteltrace.TraceID{}},
	}
	w.common = keyValues(identity(w.op))
	where := at{trace: b.ids.trace(f.Operation), parent: b.ids.operation(f.Operation)}
	if above := w3c.Parse(f.Trace); above.Recorded() {
		where = under(above)
	}
	return w, where
}

// hungLink links a call that is over to the mark that it hung.
func (w *writer) hungLink(call *timeline.Call, where at) *tracepb.Span_Link {
	trace := where.trace
	if call.Told { // nobody knew that yet when it hung
		trace = w.own
	}
	return link(oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: trace, SpanID: w.ids.hung(trace, call.Runs[0].Process, call.Start), TraceFlags: oteltrace.FlagsSampled,
	}), "it hung")
}
