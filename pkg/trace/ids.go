package trace

import (
	"crypto/sha256"
	"encoding/binary"

	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

type at struct {
	trace      oteltrace.TraceID
	parent     oteltrace.SpanID
	state      string
	remote     bool
	attributes []byte // encoded, of all spans below
}

func (a at) under(s *tracepb.Span) at {
	a.remote = false
	copy(a.parent[:], s.SpanId)
	return a
}

func recorded(parent event.TraceContext) (at, bool) {
	above := w3c.Parse(parent)
	where := at{trace: above.TraceID(), parent: above.SpanID(), state: above.TraceState().String(), remote: true}
	return where, above.Recorded()
}

// IDs derives ids, so a replayed recording has the exported ones. Seed is unique until a node restarts: its boot id.
type IDs struct{ Seed string }

func (g IDs) trace(op model.Key) (id oteltrace.TraceID) {
	g.derive(id[:], op.Start, g.Seed, string(op.Kind), op.ContainerID, string(op.First))
	return id
}

func (g IDs) operation(op model.Key) oteltrace.SpanID {
	return g.span(g.trace(op), "operation", op.Start)
}

func (g IDs) call(trace oteltrace.TraceID, first event.Process, start int64) oteltrace.SpanID {
	return g.span(trace, "call "+string(first), start)
}

func (g IDs) hung(trace oteltrace.TraceID, first event.Process, start int64) oteltrace.SpanID {
	return g.span(trace, "hung "+string(first), start)
}

// of returns the operation's root span, or the first call's if that has a recorded parent.
func (g IDs) of(op model.Key) oteltrace.SpanContext {
	if above, ok := recorded(op.Trace); ok {
		return spanContext(above.trace, g.call(above.trace, op.First, op.Start))
	}
	return spanContext(g.trace(op), g.operation(op))
}

func (g IDs) run(b *model.Blame) oteltrace.SpanContext {
	trace := g.of(b.Call).TraceID()
	return spanContext(trace, g.span(trace, string(b.Process), b.Start))
}

func spanContext(trace oteltrace.TraceID, span oteltrace.SpanID) oteltrace.SpanContext {
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: trace, SpanID: span, TraceFlags: oteltrace.FlagsSampled,
	})
}

func (g IDs) span(trace oteltrace.TraceID, process string, start int64) (id oteltrace.SpanID) {
	g.derive(id[:], start, g.Seed, string(trace[:]), process)
	return id
}

func (IDs) derive(id []byte, at int64, parts ...string) {
	all := make([]byte, 0, 256)
	for _, part := range parts {
		// lengths keep lists apart
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(part))), part...)
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(all, uint64(at)))
	copy(id, sum[:])
	// zero is invalid (W3C Trace Context, 3.2.2.3)
	id[0] |= 1
}
