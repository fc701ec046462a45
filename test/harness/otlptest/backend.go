package otlptest

import (
	"net"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/harness"
)

// Backend serves OTLP over gRPC at addr, such as "127.0.0.1:0", until the test ends. It returns its address.
func Backend(t testing.TB, addr string, backend coltracepb.TraceServiceServer, options ...grpc.ServerOption) string {
	t.Helper()
	l := harness.Must(net.Listen("tcp", addr))(t)
	return BackendAt(t, l, backend, options...)
}

// BackendAt is Backend for an open listener.
func BackendAt(t testing.TB, l net.Listener, backend coltracepb.TraceServiceServer, options ...grpc.ServerOption) string {
	t.Helper()
	s := grpc.NewServer(options...)
	coltracepb.RegisterTraceServiceServer(s, backend)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().String()
}
