package trace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
)

// Test is a trace of one span, `cniscope doctor`, which shows that a backend takes and
// keeps what this node sends. Its kind is "test", so that no search for calls finds it.
func Test(n Node, ids IDs, at time.Time) *tracepb.ResourceSpans {
	var trace [16]byte
	ids.derive(trace[:], at.UnixNano(), ids.Seed, "test")
	id := ids.span(trace, "test", at.UnixNano())
	return &tracepb.ResourceSpans{
		SchemaUrl: semconv.SchemaURL,
		Resource:  &resourcepb.Resource{Attributes: keyValues(n.Resource())},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: Scope, Version: n.Version},
			Spans: []*tracepb.Span{{
				Name: "cniscope doctor", TraceId: trace[:], SpanId: id[:], Kind: tracepb.Span_SPAN_KIND_INTERNAL,
				StartTimeUnixNano: uint64(at.UnixNano()), EndTimeUnixNano: uint64(at.UnixNano()),
				Attributes: keyValues([]attribute.KeyValue{attr.Kind(attr.KindTest)}),
			}},
		}},
	}
}
