package access

import (
	"bytes"
	"cmp"
	"slices"

	"go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/control"
)

// others lists attributes that may name another pod's process, or work that an agent may have done for another pod.
func others() []string {
	return []string{
		string(attr.LockHolderNameKey), string(attr.LockHolderPIDKey), string(attr.LockHolderParentKey),
		string(attr.BiggestPartKey), string(attr.BiggestPartNameKey),
	}
}

// Spans returns the visible spans: those of the viewer's namespace, without lock holders, unconfirmed agent work and
// links to other traces. Sentences stay if lines, the visible ones, contain them, as far as they are about the pod
// itself. It modifies the given spans.
func (v Viewer) Spans(all []*tracepb.ResourceSpans, lines []control.Line) []*tracepb.ResourceSpans {
	if v.Operator {
		return all
	}
	return slices.DeleteFunc(all, func(r *tracepb.ResourceSpans) bool {
		whose, known := namespace(r.GetResource().GetAttributes())
		if known && whose != v.Namespace {
			return true
		}
		for _, scope := range r.GetScopeSpans() {
			scope.Spans = v.own(scope.GetSpans(), known, lines)
		}
		r.ScopeSpans = slices.DeleteFunc(r.ScopeSpans, func(s *tracepb.ScopeSpans) bool { return len(s.GetSpans()) == 0 })
		return len(r.ScopeSpans) == 0
	})
}

// own removes facts about other pods. Parents precede children. known means that spans without a namespace belong to
// the viewer's.
func (v Viewer) own(spans []*tracepb.Span, known bool, lines []control.Line) []*tracepb.Span {
	foreign := slices.ContainsFunc(lines, func(l control.Line) bool { return l.Foreign })
	gone := map[string]bool{}
	spans = slices.DeleteFunc(spans, func(s *tracepb.Span) bool {
		whose, said := namespace(s.GetAttributes())
		drop := gone[string(s.GetParentSpanId())] || candidate(s.GetAttributes()) || said && whose != v.Namespace || !said && !known
		if drop {
			gone[string(s.GetSpanId())] = true
		}
		return drop
	})
	hide := others()
	if foreign {
		hide = append(hide, string(attr.CNIErrorMessageKey))
	}
	for _, s := range spans {
		s.Links = slices.DeleteFunc(s.Links, func(l *tracepb.Span_Link) bool {
			return !bytes.Equal(l.GetTraceId(), s.GetTraceId()) || gone[string(l.GetSpanId())]
		})
		if foreign && s.Status != nil {
			s.Status.Message = ""
		}
		s.Attributes = without(sentences(s.Attributes, lines), hide...)
		s.Events = slices.DeleteFunc(s.Events, func(e *tracepb.Span_Event) bool { return candidate(e.GetAttributes()) })
		for _, e := range s.Events {
			e.Attributes = without(e.Attributes, hide...)
		}
	}
	return spans
}

func valueOf(attributes []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	i := slices.IndexFunc(attributes, func(kv *commonpb.KeyValue) bool { return kv.GetKey() == key })
	if i < 0 {
		return nil
	}
	return cmp.Or(attributes[i].GetValue(), &commonpb.AnyValue{})
}

// candidate reports whether a span is unconfirmed work of an agent.
func candidate(attributes []*commonpb.KeyValue) bool {
	v := valueOf(attributes, string(attr.AttributionKey))
	return v != nil && v.GetStringValue() != "certain"
}

// namespace returns the namespace of the pod that a span or resource belongs to.
func namespace(attributes []*commonpb.KeyValue) (whose string, ok bool) {
	v := valueOf(attributes, string(semconv.K8SNamespaceNameKey))
	return v.GetStringValue(), v != nil
}

// sentences keeps a call's verdict and remedy only if a line contains them, since others may name another pod.
func sentences(attributes []*commonpb.KeyValue, lines []control.Line) []*commonpb.KeyValue {
	verdict := valueOf(attributes, string(attr.VerdictKey))
	var line control.Line
	if i := slices.IndexFunc(lines, func(l control.Line) bool { return verdict != nil && l.Verdict == verdict.GetStringValue() }); i >= 0 {
		line = lines[i]
	}
	if line.Verdict == "" || line.Foreign {
		attributes = without(attributes, string(attr.RemedyKey))
	}
	seen := Own(line).Verdict
	if seen == "" {
		return without(attributes, string(attr.VerdictKey))
	}
	verdict.Value = &commonpb.AnyValue_StringValue{StringValue: seen}
	return attributes
}

func without(attributes []*commonpb.KeyValue, hide ...string) []*commonpb.KeyValue {
	return slices.DeleteFunc(attributes, func(kv *commonpb.KeyValue) bool { return slices.Contains(hide, kv.GetKey()) })
}
