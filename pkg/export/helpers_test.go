package export

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is when a test gives up; none waits that long when it passes.
const patience = 30 * time.Second

// operation is one operation of a single span with the given name.
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

func operations(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("operation %03d", i)
	}
	return names
}

// collector is a real OTLP server that remembers what it got.
type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	addr string
	// answer, if set, is asked with the names of the spans before they are taken.
	answer func(names []string) (*coltracepb.ExportTracePartialSuccess, error)

	mu          sync.Mutex
	names       []string
	requests    int
	resource    string
	headers     metadata.MD
	compression string
}

// listen starts a collector; addr may be ":0"'s like.
func listen(t *testing.T, addr string, c *collector, opts ...grpc.ServerOption) *collector {
	t.Helper()
	c.addr = harness.Backend(t, addr, c, append(opts, grpc.StatsHandler(c))...)
	return c
}

func (c *collector) Export(ctx context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	var names []string
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				names = append(names, s.GetName())
			}
		}
	}
	var partial *coltracepb.ExportTracePartialSuccess
	if c.answer != nil {
		var err error
		if partial, err = c.answer(names); err != nil {
			c.mu.Lock()
			c.requests++
			c.mu.Unlock()
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.names = append(c.names, names...)
	c.resource = fmt.Sprint(r.GetResourceSpans()[0].GetResource().GetAttributes())
	c.headers, _ = metadata.FromIncomingContext(ctx)
	return &coltracepb.ExportTraceServiceResponse{PartialSuccess: partial}, nil
}

// got returns the names of all spans that arrived, sorted.
func (c *collector) got() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.names))
}

// stats.Handler: the only place where a server is told how a request was packed.
func (c *collector) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.compression = h.Compression
	}
}

func (c *collector) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c *collector) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *collector) HandleConn(context.Context, stats.ConnStats)                       {}
