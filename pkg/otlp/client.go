package export

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/queue"
)

// OTLPOptions say where and how OTLP over gRPC is spoken. They are all there is:
// no environment variable changes them.
type OTLPOptions struct {
	// Endpoint is host:port.
	Endpoint string
	// TLS is nil for plain text.
	TLS *tls.Config
	// Headers are sent with every request. They are secrets.
	Headers map[string]string
	Gzip    bool
	Timeout time.Duration // Timeout is for one request.
}

// client is a connection, and what each request is sent with.
type client struct {
	connection *grpc.ClientConn
	headers    metadata.MD
	timeout    time.Duration
	peer       otlp.Peer
}

// NewOTLP returns an exporter that speaks OTLP over gRPC. It does not connect: that the endpoint cannot be
// reached is an error of Export. The error here means that the endpoint is none.
func NewOTLP(o OTLPOptions) (Exporter, error) {
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	// A proxy that the environment names is for TLS: in plain text spans go to the endpoint alone.
	proxy := grpc.WithNoProxy()
	if o.TLS != nil {
		proxy = grpc.EmptyDialOption{}
	}
	compressor := ""
	if o.Gzip {
		compressor = gzip.Name
	}
	connection, err := grpc.NewClient(o.Endpoint,
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent("cniscope"),
		proxy,
		grpc.WithDisableServiceConfig(), // DNS is asked for the endpoint's addresses and for nothing else
		grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor)),
		// gRPC waits up to 2 minutes between connections by itself; the Queue
		// asks every 30 s and should not be answered from memory.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 10 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		// A connection whose other end is gone without a word is given up after 20 s
		// (gRPC sets TCP_USER_TIMEOUT from Timeout), not after the 15 minutes of TCP.
		// Time is above the 5 minutes below which servers hang up on pings.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Minute, Timeout: 20 * time.Second}),
	)
	if err != nil {
		return nil, fmt.Errorf("OTLP endpoint %q: %w", o.Endpoint, err)
	}
	return &client{connection, metadata.New(o.Headers), o.Timeout, otlp.NewPeer(o.Endpoint, o.Headers)}, nil
}

func (e *client) Export(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return &queue.RejectedError{Err: err}
	}
	return e.exportEncoded(ctx, [][]byte{data})
}

// exportEncoded sends operations as they are, without copying them: TracesData and a request have the same field, and
// encoded messages, one after another, are one message.
func (e *client) exportEncoded(ctx context.Context, operations [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	var answer coltracepb.ExportTraceServiceResponse
	if err := e.connection.Invoke(metadata.NewOutgoingContext(ctx, e.headers), coltracepb.TraceService_Export_FullMethodName,
		operations, &answer, grpc.ForceCodecV2(asEncoded{})); err != nil {
		return e.peer.Error(err)
	}
	if p := answer.GetPartialSuccess(); p.GetRejectedSpans() > 0 || p.GetErrorMessage() != "" {
		return &queue.PartialError{Spans: uint64(max(0, p.GetRejectedSpans())), Message: e.peer.Text(p.GetErrorMessage())}
	}
	return nil
}

func (e *client) Shutdown(context.Context) error {
	if err := e.connection.Close(); err != nil {
		return fmt.Errorf("close the OTLP connection: %w", err)
	}
	return nil
}
