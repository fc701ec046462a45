package export

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/test/harness/otlptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a timeout that passing tests never reach.
const patience = 30 * time.Second

func operation(name string) []*tracepb.ResourceSpans {
	id := make([]byte, 16)
	binary.BigEndian.PutUint64(id[8:], uint64(len(name))+1)
	return []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{
			Key: "service.name", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "cniscope"}},
		}}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
			TraceId: id, SpanId: id[8:], Name: name,
			StartTimeUnixNano: 1_700_000_000_123_456_789, EndTimeUnixNano: 1_700_000_001_000_000_001,
		}}}},
	}}
}

func offer(q *Queue, name string) bool {
	spans := operation(name)
	return q.Enqueue(spans[0], func() ([]byte, error) { return proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) })
}

func operations(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("operation %03d", i)
	}
	return names
}

func sorted(c *otlptest.Collector) []string { return slices.Sorted(slices.Values(c.Got())) }
