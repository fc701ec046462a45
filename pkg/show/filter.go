package show

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
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

// slow tells whether a call, or something in it, took too long.
func (n *node) slow() bool {
	return n.is(attr.SlowKey) || slices.ContainsFunc(slowThings(), func(s slowThing) bool { return n.number(s.key) > 0 })
}

// slowThing is what may be slow in a call, as the call's span counts it.
type slowThing struct {
	key  attribute.Key
	name string
}

func slowThings() []slowThing {
	return []slowThing{
		{attr.SlowCommandsKey, "slow command"}, {attr.SlowAgentsKey, "slow agent call"}, {attr.SlowLocksKey, "slow lock wait"},
	}
}
