//go:build linux

package kubernetes

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

type span struct {
	*tracepb.Span
	service  string
	resource []*commonpb.KeyValue
	parent   *span
}

func (s *span) has(key, value string) bool {
	return slices.ContainsFunc(slices.Concat(s.resource, s.Attributes), func(kv *commonpb.KeyValue) bool {
		return kv.Key == key && kv.Value.GetStringValue() == value
	})
}

func (s *span) marked() bool {
	return slices.ContainsFunc(s.Attributes, func(kv *commonpb.KeyValue) bool {
		return (kv.Key == "cniscope.outlived" || kv.Key == "cniscope.unfinished") && kv.Value.GetBoolValue()
	})
}

func (s *span) String() string {
	return fmt.Sprintf("%s: %s (%s, %s)", s.service, s.Name,
		time.Unix(0, int64(s.StartTimeUnixNano)).UTC().Format("15:04:05.000000000"),
		time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano))
}

func (s *span) above() (names []string) {
	for p := s.parent; p != nil; p = p.parent {
		names = append(names, p.service+"/"+p.Name)
	}
	return names
}

type trace struct {
	id      string
	spans   []*span
	orphans []*span
}

func newTrace(id string, all []*tracepb.ResourceSpans) *trace {
	t := &trace{id: id}
	byID := map[string]*span{}
	for _, rs := range all {
		service := ""
		for _, kv := range rs.GetResource().GetAttributes() {
			if kv.Key == "service.name" {
				service = kv.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				x := &span{Span: s, service: service, resource: rs.GetResource().GetAttributes()}
				byID[string(s.SpanId)] = x
				t.spans = append(t.spans, x)
			}
		}
	}
	for _, s := range t.spans {
		s.parent = byID[string(s.ParentSpanId)]
		if len(s.ParentSpanId) > 0 && s.parent == nil {
			t.orphans = append(t.orphans, s)
		}
	}
	return t
}

// answered reports a server span, which ends when gRPC has sent the answer: the client may have it
// earlier.
func (s *span) answered() bool {
	return s.Kind == tracepb.Span_SPAN_KIND_SERVER && s.parent.Kind == tracepb.Span_SPAN_KIND_CLIENT
}

// follows reports a span that begins when the network is set up: its parent, containerd's span of that, may be over.
func (s *span) follows() bool { return s.service == "cniscope" && s.Name == "sandbox start" }

func (s *span) precedes() bool {
	return s.service == "cniscope" && slices.Contains([]string{"create network namespace", "prepare network"}, s.Name)
}

// outside returns unmarked spans that are not within their parent.
func (t *trace) outside() (found []string) {
	for _, s := range t.spans {
		if s.parent == nil || s.marked() {
			continue
		}
		// go-cni's asynchAttach ends after its parent has its result.
		if s.service == "containerd" && s.parent.service == "containerd" {
			continue
		}
		late := s.EndTimeUnixNano > s.parent.EndTimeUnixNano && !s.answered() && !s.follows()
		if s.StartTimeUnixNano < s.parent.StartTimeUnixNano && !s.precedes() || late {
			found = append(found, fmt.Sprintf("%s is not within %s", s, s.parent))
		}
	}
	return found
}

func (t *trace) services() []string {
	var all []string
	for _, s := range t.spans {
		all = append(all, s.service)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *trace) find(service, name string) []*span {
	return slices.DeleteFunc(slices.Clone(t.spans), func(s *span) bool { return s.service != service || s.Name != name })
}

func (t *trace) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "trace %s\n", t.id)
	var draw func(above *span, depth int)
	draw = func(above *span, depth int) {
		for _, s := range t.spans {
			if s.parent == above {
				fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), s)
				draw(s, depth+1)
			}
		}
	}
	draw(nil, 1)
	return b.String()
}

func (s *span) traceID() string { return hex.EncodeToString(s.TraceId) }
