package otlptest

import (
	"context"
	"strings"
	"sync"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Echo is an endpoint that repeats the credentials, in a spelling of its own each time.
type Echo struct {
	coltracepb.UnimplementedTraceServiceServer
	mu sync.Mutex
	// Ways are the spellings, in turn.
	Ways []func(string) string
}

// Export rejects a request with the credentials in the message.
func (e *Echo) Export(ctx context.Context, _ *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	way := e.Ways[0]
	e.Ways = append(e.Ways[1:], way)
	headers, _ := metadata.FromIncomingContext(ctx)
	_, token, _ := strings.Cut(headers.Get("authorization")[0], " ")
	return nil, status.Error(codes.Unauthenticated, "invalid credentials ["+way(token)+"] for user")
}
