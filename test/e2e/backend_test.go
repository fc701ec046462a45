//go:build linux

package e2e

import (
	"context"
	"encoding/hex"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // accept gzip

	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// backend is an OTLP server that counts, because a backend that deduplicates ids would hide duplicates.
type backend struct {
	otlptest.Collector
	mu    sync.Mutex
	spans []*span
	times map[string]int // number of receptions per span
}

func receive(t *testing.T, addr string, options ...grpc.ServerOption) *backend {
	t.Helper()
	r := &backend{times: map[string]int{}}
	otlptest.Backend(t, addr, r, append(options, grpc.StatsHandler(r))...)
	return r
}

func (r *backend) Export(ctx context.Context, in *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range flatten(in.GetResourceSpans()) {
		r.spans = append(r.spans, x)
		r.times[x.trace()+hex.EncodeToString(x.SpanId)]++
	}
	return r.Collector.Export(ctx, in)
}

func (r *backend) got() []*span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[:len(r.spans):len(r.spans)]
}

func (r *backend) twice() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.times {
		if times > 1 {
			n++
		}
	}
	return n
}
