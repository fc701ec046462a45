package access

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/control"
)

// others are the attributes that say who was in the way: anybody on the node.
func others() []string {
	return []string{string(attr.LockHolderNameKey), string(attr.LockHolderPIDKey), string(attr.LockHolderParentKey), string(attr.BiggestPartKey)}
}

// Spans returns the spans of an operation, OTLP JSON, as who may see the operation may see them: without who had a
// lock that it waited for, without what an agent did perhaps for it and perhaps for another pod, and without
// links to other traces. Sentences stay if they are those of the operation's line, as far as that one is the pod's own.
func (v Viewer) Spans(otlp []byte, line control.Line) ([]byte, error) {
	if v.Operator {
		return otlp, nil
	}
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(otlp)
	if err != nil {
		return nil, fmt.Errorf("the spans that cniscope remembers cannot be read: %w", err)
	}
	traces.ResourceSpans().RemoveIf(func(r ptrace.ResourceSpans) bool { return ofAnother(r.Resource().Attributes(), line) })
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			own(scope.Spans(), line)
		}
	}
	return (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
}

// own takes away what is not a pod's own. Parents come before children.
func own(spans ptrace.SpanSlice, line control.Line) {
	gone := map[pcommon.SpanID]bool{}
	spans.RemoveIf(func(s ptrace.Span) bool {
		drop := gone[s.ParentSpanID()] || candidate(s.Attributes()) || ofAnother(s.Attributes(), line)
		if drop {
			gone[s.SpanID()] = true
		}
		return drop
	})
	for _, s := range spans.All() {
		trace := s.TraceID()
		s.Links().RemoveIf(func(l ptrace.SpanLink) bool { return l.TraceID() != trace || gone[l.SpanID()] })
		if line.Foreign {
			s.Status().SetMessage("")
			without(s.Attributes(), string(attr.CNIErrorMessageKey))
		}
		sentences(s.Attributes(), line)
		without(s.Attributes(), others()...)
		s.Events().RemoveIf(func(e ptrace.SpanEvent) bool { return candidate(e.Attributes()) })
		for _, e := range s.Events().All() {
			without(e.Attributes(), others()...)
		}
	}
}

// candidate tells whether something is what an agent did for one of several calls, nobody knows which.
func candidate(attributes pcommon.Map) bool {
	v, ok := attributes.Get(string(attr.AttributionKey))
	return ok && v.AsString() != "certain"
}

// ofAnother tells whether a span, or a resource, says that it is of a namespace that the line is not of.
func ofAnother(attributes pcommon.Map, line control.Line) bool {
	v, ok := attributes.Get(string(semconv.K8SNamespaceNameKey))
	return ok && v.AsString() != line.Namespace
}

// sentences leaves a call's verdict and remedy where they are the line's. Of another call of the operation nobody said
// whom they name.
func sentences(attributes pcommon.Map, line control.Line) {
	verdict, ok := attributes.Get(string(attr.VerdictKey))
	if !ok || verdict.AsString() != line.Verdict || line.Foreign {
		without(attributes, string(attr.RemedyKey))
	}
	switch seen := Own(line).Verdict; {
	case ok && verdict.AsString() == line.Verdict && seen != "":
		verdict.SetStr(seen)
	default:
		without(attributes, string(attr.VerdictKey))
	}
}

func without(attributes pcommon.Map, hide ...string) {
	attributes.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(hide, key) })
}
