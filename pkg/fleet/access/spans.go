package access

import (
	"bytes"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/control"
)

// others are the attributes that say who was in the way, who may be anybody on the node, or what, which an agent may
// have done for anybody.
func others() []string {
	return []string{
		string(attr.LockHolderNameKey), string(attr.LockHolderPIDKey), string(attr.LockHolderParentKey),
		string(attr.BiggestPartKey), string(attr.BiggestPartNameKey),
	}
}

// Spans returns the spans of operations, lines of OTLP JSON, as the viewer may see them: those of pods of the viewer's
// namespace, without who had a lock that they waited for, without what an agent did perhaps for them and perhaps for
// another pod, and without links to other traces. Sentences stay if they are those of a line, as far as that one is the
// pod's own. lines are the operations' that the viewer may see.
func (v Viewer) Spans(otlp []byte, lines []control.Line) ([]byte, error) {
	if v.Operator {
		return otlp, nil
	}
	var seen bytes.Buffer
	for document := range bytes.Lines(otlp) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		own, err := v.document(document, lines)
		if err != nil {
			return nil, fmt.Errorf("the spans that cniscope remembers cannot be read: %w", err)
		}
		if own != nil {
			seen.Write(append(own, '\n'))
		}
	}
	return seen.Bytes(), nil
}

// document is Spans for one line of OTLP JSON; nil if nothing of it may be seen.
func (v Viewer) document(otlp []byte, lines []control.Line) ([]byte, error) {
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(otlp)
	if err != nil {
		return nil, err
	}
	traces.ResourceSpans().RemoveIf(func(r ptrace.ResourceSpans) bool {
		whose, known := namespace(r.Resource().Attributes())
		if known && whose != v.Namespace {
			return true
		}
		for _, scope := range r.ScopeSpans().All() {
			v.own(scope.Spans(), known, lines)
		}
		r.ScopeSpans().RemoveIf(func(s ptrace.ScopeSpans) bool { return s.Spans().Len() == 0 })
		return r.ScopeSpans().Len() == 0
	})
	if traces.ResourceSpans().Len() == 0 {
		return nil, nil
	}
	return (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
}

// own takes away what is not a pod's own. Parents come before children. known says that the spans are of the viewer's
// namespace unless they say otherwise; if it is not, they have to say so.
func (v Viewer) own(spans ptrace.SpanSlice, known bool, lines []control.Line) {
	foreign := slices.ContainsFunc(lines, func(l control.Line) bool { return l.Foreign })
	gone := map[pcommon.SpanID]bool{}
	spans.RemoveIf(func(s ptrace.Span) bool {
		whose, said := namespace(s.Attributes())
		drop := gone[s.ParentSpanID()] || candidate(s.Attributes()) || said && whose != v.Namespace || !said && !known
		if drop {
			gone[s.SpanID()] = true
		}
		return drop
	})
	for _, s := range spans.All() {
		trace := s.TraceID()
		s.Links().RemoveIf(func(l ptrace.SpanLink) bool { return l.TraceID() != trace || gone[l.SpanID()] })
		if foreign {
			s.Status().SetMessage("")
			without(s.Attributes(), string(attr.CNIErrorMessageKey))
		}
		sentences(s.Attributes(), lines)
		without(s.Attributes(), others()...)
		s.Events().RemoveIf(func(e ptrace.SpanEvent) bool { return candidate(e.Attributes()) })
		for _, e := range s.Events().All() {
			without(e.Attributes(), others()...)
			if foreign {
				without(e.Attributes(), string(attr.CNIErrorMessageKey))
			}
		}
	}
}

// candidate reports whether something is what an agent did for one of several calls, nobody knows which.
func candidate(attributes pcommon.Map) bool {
	v, ok := attributes.Get(string(attr.AttributionKey))
	return ok && v.AsString() != "certain"
}

// namespace is that of the pod whose a span, or a resource, is; ok is false if it does not say.
func namespace(attributes pcommon.Map) (whose string, ok bool) {
	v, ok := attributes.Get(string(semconv.K8SNamespaceNameKey))
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

// sentences keeps a call's verdict and remedy if a line has them. For another call of the operation nobody said
// whom they name.
func sentences(attributes pcommon.Map, lines []control.Line) {
	verdict, ok := attributes.Get(string(attr.VerdictKey))
	var line control.Line
	if ok {
		if i := slices.IndexFunc(lines, func(l control.Line) bool { return l.Verdict == verdict.AsString() }); i >= 0 {
			line = lines[i]
		}
	}
	if seen := Own(line).Verdict; seen != "" {
		verdict.SetStr(seen)
	} else {
		without(attributes, string(attr.VerdictKey))
	}
	if line.Verdict == "" || line.Foreign {
		without(attributes, string(attr.RemedyKey))
	}
}

func without(attributes pcommon.Map, hide ...string) {
	attributes.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(hide, key) })
}
