// Package w3c reads trace contexts that somebody else wrote.
package w3c

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/event"
)

// Parent is the span that somebody else's trace context names. It is the one place where it is
// decided what may hang under it, and what its owner's sampler decided for what does.
type Parent struct{ trace.SpanContext }

// Parse returns the span that c names. It is not valid (IsValid is false) if c is
// empty or broken.
func Parse(c event.TraceContext) Parent {
	carrier := propagation.MapCarrier{"traceparent": c.Parent, "tracestate": c.State}
	return Parent{trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))}
}

// Recorded reports whether a span may hang under it: it is known, and its owner records it.
func (p Parent) Recorded() bool { return p.IsValid() && p.IsSampled() }

// Unsampled reports whether its owner's sampler left it out. A span below it would be an
// orphan, and is kept, as a trace of its own, only if a rule of ours asks for it.
func (p Parent) Unsampled() bool { return p.IsValid() && !p.IsSampled() }
