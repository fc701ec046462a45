//go:build linux

package e2e

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // accept gzip
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"

	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// backend is an OTLP server that counts, because a backend that deduplicates ids would hide duplicates.
type backend struct {
	coltracepb.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*span
	times map[string]int // number of receptions per span
	asks  []request
}

type request struct{ compression, headers, client string }

func receive(t *testing.T, addr string, r *backend, options ...grpc.ServerOption) *backend {
	t.Helper()
	r.times = map[string]int{}
	options = append(options, grpc.StatsHandler(compression{}))
	otlptest.Backend(t, addr, r, options...)
	return r
}

func (r *backend) Export(ctx context.Context, in *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	q := request{compression: *ctx.Value(compression{}).(*string), headers: strings.Join(append(headers.Get("authorization"), headers.Get("x-scope-orgid")...), ", ")}
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			q.client = info.State.PeerCertificates[0].Subject.CommonName
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks = append(r.asks, q)
	for _, x := range flatten(in.GetResourceSpans()) {
		r.spans = append(r.spans, x)
		r.times[x.trace()+hex.EncodeToString(x.SpanId)]++
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func (r *backend) got() []*span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[:len(r.spans):len(r.spans)]
}

func (r *backend) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asks)
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

type compression struct{}

func (compression) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, compression{}, new(string))
}

func (compression) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InHeader); ok {
		*ctx.Value(compression{}).(*string) = in.Compression
	}
}

func (compression) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (compression) HandleConn(context.Context, stats.ConnStats) {}

func ids(spans []*span) string {
	var all []string
	for _, x := range spans {
		all = append(all, x.id())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
