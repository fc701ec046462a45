package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"io"

	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// at is a place below which spans are made.
type at struct {
	trace  oteltrace.TraceID
	parent oteltrace.SpanID
	state  string
	// remote: the parent is not one of ours.
	remote bool
	// attributes are on each span below; shared.
	attributes []*commonpb.KeyValue
}

// under is the place below s, one of our spans.
func (a at) under(s *tracepb.Span) at {
	a.remote = false
	copy(a.parent[:], s.SpanId)
	return a
}

// recorded returns the place below the span of a call's environment, and whether that span is recorded.
func recorded(parent event.TraceContext) (at, bool) {
	above := w3c.Parse(parent)
	return at{trace: above.TraceID(), parent: above.SpanID(), state: above.TraceState().String(), remote: true}, above.Recorded()
}

// IDs derives trace and span ids, so that a replayed recording has the ids of the live export, and an operation that
// is sent twice is one trace.
type IDs struct {
	// Seed is unique to a node until it restarts: its boot id.
	Seed string
}

// trace is the trace id of an operation without a recorded parent.
func (g IDs) trace(op model.Key) (id oteltrace.TraceID) {
	g.derive(id[:], op.Start, g.Seed, string(op.Kind), op.ContainerID, string(op.First))
	return id
}

// operation is the id of the root span of such a trace.
func (g IDs) operation(op model.Key) oteltrace.SpanID {
	return g.span(g.trace(op), "operation", op.Start)
}

// call is the id of a call, by its first process.
func (g IDs) call(trace oteltrace.TraceID, first event.Process, start int64) oteltrace.SpanID {
	return g.span(trace, "call "+string(first), start)
}

// hung is the span id of a call's hung mark.
func (g IDs) hung(trace oteltrace.TraceID, first event.Process, start int64) oteltrace.SpanID {
	return g.span(trace, "hung "+string(first), start)
}

// of returns an operation's root span, or its first call's if that has a recorded parent.
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
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: trace, SpanID: span, TraceFlags: oteltrace.FlagsSampled})
}

// span is the id of an activity that a process began at start.
func (g IDs) span(trace oteltrace.TraceID, process string, start int64) (id oteltrace.SpanID) {
	g.derive(id[:], start, g.Seed, string(trace[:]), process)
	return id
}

func (IDs) derive(id []byte, at int64, parts ...string) {
	h := sha256.New()
	for _, part := range parts {
		// Lengths separate the parts, so that different lists differ.
		_ = binary.Write(h, binary.BigEndian, uint32(len(part)))
		_, _ = io.WriteString(h, part)
	}
	_ = binary.Write(h, binary.BigEndian, at)
	copy(id, h.Sum(nil))
	// All zeros is not an id (W3C Trace Context, 3.2.2.3).
	id[0] |= 1
}
