// Package w3c reads trace contexts that somebody else wrote.
package w3c

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/event"
)

// Parse returns the span that c names. It is not valid (IsValid is false) if c is
// empty or broken.
func Parse(c event.TraceContext) trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": c.Parent, "tracestate": c.State}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
