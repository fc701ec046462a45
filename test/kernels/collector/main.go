// Command collector receives OTLP over gRPC in the machines of test/kernels and writes each span as a JSON line:
// collector ADDRESS FILE. SIGTERM stops it after all answers.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/kernels/traced"
)

func main() {
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func serve(address, file string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	coltracepb.RegisterTraceServiceServer(server, &collector{to: json.NewEncoder(out)})
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() {
		<-end
		server.GracefulStop()
	}()
	return server.Serve(l)
}

type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	mu sync.Mutex
	to *json.Encoder
}

// Export writes each span's identity and times.
func (c *collector) Export(_ context.Context, in *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range in.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				err := c.to.Encode(traced.Span{
					Name: s.GetName(), Kind: text(s.GetAttributes(), "cniscope.kind"), Sandbox: text(append(s.GetAttributes(), rs.GetResource().GetAttributes()...), "sandbox.id"),
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Start: int64(s.GetStartTimeUnixNano()), End: int64(s.GetEndTimeUnixNano()),
				})
				if err != nil {
					return nil, fmt.Errorf("write down a span: %w", err)
				}
			}
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func text(attributes []*commonpb.KeyValue, key string) string {
	for _, kv := range attributes {
		if kv.GetKey() == key {
			return kv.GetValue().GetStringValue()
		}
	}
	return ""
}
