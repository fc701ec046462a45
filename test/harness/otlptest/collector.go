package otlptest

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Collector is an OTLP server that keeps the requests. Its fields may be read when no request is in progress.
type Collector struct {
	coltracepb.UnimplementedTraceServiceServer
	Addr string
	// Answer, if set, decides the answer from the names of the spans, before Collector keeps them.
	Answer func(names []string) (*coltracepb.ExportTracePartialSuccess, error)

	mu          sync.Mutex
	names       []string
	Requests    int
	Resource    string
	Headers     metadata.MD
	Compression string
}

// Collect serves OTLP over gRPC at addr, such as "127.0.0.1:0", until the test ends.
func Collect(t testing.TB, addr string, c *Collector, options ...grpc.ServerOption) *Collector {
	t.Helper()
	c.Addr = Backend(t, addr, c, append(options, grpc.StatsHandler(c))...)
	return c
}

// CollectHTTP serves OTLP over HTTP at /v1/traces until the test ends.
func CollectHTTP(t testing.TB, c *Collector, secure *tls.Config) *Collector {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("POST /v1/traces", c)
	server := httptest.NewUnstartedServer(mux)
	if server.TLS = secure; secure == nil {
		server.Start()
	} else {
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	c.Addr = server.Listener.Addr().String()
	return c
}

// Got returns the names of all spans, in the order of arrival.
func (c *Collector) Got() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.names)
}

// Export implements the service.
func (c *Collector) Export(ctx context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	var names []string
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				names = append(names, s.GetName())
			}
		}
	}
	var (
		partial *coltracepb.ExportTracePartialSuccess
		err     error
	)
	if c.Answer != nil {
		partial, err = c.Answer(names)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Requests++; err != nil {
		return nil, err
	}
	c.names = append(c.names, names...)
	c.Resource = fmt.Sprint(r.GetResourceSpans()[0].GetResource().GetAttributes())
	c.Headers, _ = metadata.FromIncomingContext(ctx)
	return &coltracepb.ExportTraceServiceResponse{PartialSuccess: partial}, nil
}

// ServeHTTP implements OTLP/HTTP, including the status codes of refusals.
func (c *Collector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, packed := io.Reader(q.Body), q.Header.Get("Content-Encoding")
	if packed == "gzip" {
		body, _ = gzip.NewReader(q.Body)
	}
	data, err := io.ReadAll(body)
	var request coltracepb.ExportTraceServiceRequest
	if err := errors.Join(err, proto.Unmarshal(data, &request)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	headers := metadata.MD{}
	for name, values := range q.Header {
		headers[strings.ToLower(name)] = values
	}
	c.mu.Lock()
	c.Compression = packed
	c.mu.Unlock()
	answer, err := c.Export(metadata.NewIncomingContext(q.Context(), headers), &request)
	w.Header().Set("Content-Type", "application/x-protobuf")
	var said proto.Message = answer
	if s, _ := status.FromError(err); err != nil {
		for _, d := range s.Details() {
			if pause, is := d.(*errdetails.RetryInfo); is {
				w.Header().Set("Retry-After", strconv.Itoa(int(pause.GetRetryDelay().AsDuration().Seconds())))
			}
		}
		said = status.New(s.Code(), s.Message()).Proto()
		w.WriteHeader(map[codes.Code]int{
			codes.InvalidArgument: 400, codes.Unauthenticated: 401, codes.Unimplemented: 404, codes.Unknown: 500,
			codes.ResourceExhausted: 429, codes.Unavailable: 503,
		}[s.Code()])
	}
	data, _ = proto.Marshal(said)
	_, _ = w.Write(data)
}

// HandleRPC notes the compression of a request, which a gRPC server reports only here.
func (c *Collector) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Compression = h.Compression
	}
}

// TagRPC changes nothing.
func (c *Collector) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn changes nothing.
func (c *Collector) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (c *Collector) HandleConn(context.Context, stats.ConnStats) {}
