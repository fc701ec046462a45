package show

import (
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Filter says which operations somebody wants to see. The zero value is all of them.
type Filter struct {
	// Pod is NAMESPACE/NAME, or NAME; empty for every pod.
	Pod string
	// Problems leaves only what was slow, failed, partly unseen, or beyond Limits.
	Problems bool
	Limits   *Limits
}

// Wants tells whether an operation, with its calls, is one of them.
func (f Filter) Wants(rs *tracepb.ResourceSpans) bool {
	for _, call := range calls(rs) {
		if f.Pod != "" && f.Pod != call.text(semconv.K8SPodNameKey) && f.Pod != pod(call) {
			continue
		}
		if !f.Problems || call.problem() || f.Limits != nil && f.Limits.wants(call) {
			return true
		}
	}
	return false
}
