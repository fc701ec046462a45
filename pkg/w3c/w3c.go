// Package w3c reads foreign trace contexts.
package w3c

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/event"
)

// Parent is the span of a foreign trace context. It decides what may be its child.
type Parent struct{ trace.SpanContext }

// Parse returns the span that c names, invalid if c is empty or broken.
func Parse(c event.TraceContext) Parent {
	carrier := propagation.MapCarrier{"traceparent": c.Parent, "tracestate": c.State}
	return Parent{trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))}
}

// Recorded reports whether a span may be a child: the parent is valid and recorded.
func (p Parent) Recorded() bool { return p.IsValid() && p.IsSampled() }

// Unsampled reports whether its owner did not sample it. A child would be an orphan, and is kept as its own trace
// only if a rule of ours asks for it.
func (p Parent) Unsampled() bool { return p.IsValid() && !p.IsSampled() }
