//go:build linux

package windows

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

type span struct {
	*tracepb.Span
	from, about map[string]string
}

type spans struct {
	coltracepb.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all []span
}

func (s *spans) Export(_ context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, flat(r.ResourceSpans)...)
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func (s *spans) list() []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func flat(resources []*tracepb.ResourceSpans) (all []span) {
	for _, r := range resources {
		from := texts(r.Resource.GetAttributes())
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				all = append(all, span{s, from, texts(s.Attributes)})
			}
		}
	}
	return all
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range attributes {
		switch v := kv.Value.GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[kv.Key] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			all[kv.Key] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_IntValue:
			all[kv.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			all[kv.Key] = fmt.Sprint(v.DoubleValue)
		case *commonpb.AnyValue_ArrayValue:
			var items []string
			for _, item := range v.ArrayValue.Values {
				items = append(items, item.GetStringValue())
			}
			all[kv.Key] = strings.Join(items, " ")
		}
	}
	return all
}

// above returns the names of the parents, from the span up to the trace's root.
func above(s span, all []span) (names []string) {
	for len(s.ParentSpanId) > 0 {
		i := slices.IndexFunc(all, func(p span) bool {
			return string(p.SpanId) == string(s.ParentSpanId) && string(p.TraceId) == string(s.TraceId)
		})
		if i < 0 {
			return append(names, "missing "+hex.EncodeToString(s.ParentSpanId))
		}
		s = all[i]
		names = append(names, s.Name)
	}
	return names
}
