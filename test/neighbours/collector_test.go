//go:build linux

package neighbours

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness/otlptest"
)

type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	addr string

	mu   sync.Mutex
	late []time.Duration
}

func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.addr = otlptest.Backend(t, "127.0.0.1:0", c)
	return c
}

// Export implements the service.
func (c *collector) Export(_ context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				if s.GetKind() == tracepb.Span_SPAN_KIND_SERVER && strings.HasSuffix(s.GetName(), "RunPodSandbox") {
					c.late = append(c.late, now.Sub(time.Unix(0, int64(s.GetEndTimeUnixNano()))))
				}
			}
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func (c *collector) times() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.late...)
}
