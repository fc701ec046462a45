//go:build linux

package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// backend is an OTLP server in the test's own process, which counts: a backend that
// keeps one span of those with the same id would not show that one came twice.
type backend struct {
	coltracepb.UnimplementedTraceServiceServer
	// tenant is who may send, if anybody in particular.
	tenant string

	mu      sync.Mutex
	refused bool
	spans   []*span
	times   map[string]int // how often each span came
}

// receive starts a backend. It ends with the test.
func receive(t *testing.T, addr string, r *backend, options ...grpc.ServerOption) *backend {
	t.Helper()
	r.times = map[string]int{}
	otlptest.Backend(t, addr, r, options...)
	return r
}

func (r *backend) Export(ctx context.Context, request *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := headers.Get("x-scope-orgid"); r.tenant != "" && (len(got) != 1 || got[0] != r.tenant) {
		r.refused = true
		return nil, status.Error(codes.Unauthenticated, "no org id")
	}
	for _, x := range flatten(request.GetResourceSpans()) {
		r.spans = append(r.spans, x)
		r.times[x.trace()+hex.EncodeToString(x.SpanId)]++
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// got returns what has come so far.
func (r *backend) got() []*span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[:len(r.spans):len(r.spans)]
}

// refusedSome fails until somebody came who is not the tenant.
func (r *backend) refusedSome() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.refused {
		return errors.New("nobody was refused")
	}
	return nil
}

// twice is how many spans came more than once.
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
