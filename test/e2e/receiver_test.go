//go:build linux

package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // what it can take
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"

	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// receiver takes OTLP over gRPC from who shows a certificate of its own CA.
type receiver struct {
	coltracepb.UnimplementedTraceServiceServer
	keys
	address string

	mu   sync.Mutex
	got  []*tracepb.ResourceSpans
	asks []request
}

// request is what a receiver saw of a request besides its spans.
type request struct{ compression, headers, client string }

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{keys: newKeys(t)}
	r.address = otlptest.Backend(t, "127.0.0.1:0", r, grpc.StatsHandler(compression{}), grpc.Creds(r.mutual))
	return r
}

func (r *receiver) Export(ctx context.Context, in *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	q := request{compression: *ctx.Value(compression{}).(*string)}
	headers, _ := metadata.FromIncomingContext(ctx)
	q.headers = strings.Join(append(headers.Get("authorization"), headers.Get("x-scope-orgid")...), ", ")
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			q.client = info.State.PeerCertificates[0].Subject.CommonName
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, in.ResourceSpans...)
	r.asks = append(r.asks, q)
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func (r *receiver) spans() []*span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return flatten(r.got)
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asks)
}

// compression notes how a request came: gRPC takes it off before the handler.
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

// ids are the span ids of spans, sorted.
func ids(spans []*span) string {
	var all []string
	for _, x := range spans {
		all = append(all, x.id())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
