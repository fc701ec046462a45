package otlp

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/cniscope/cniscope/pkg/queue"
)

// Options say where and how a Client speaks OTLP. No environment variable changes them, except the proxy's where TLS
// is spoken: in plain text spans go to the endpoint alone.
type Options struct {
	// Endpoint is host:port.
	Endpoint string
	// Path is that of OTLP over HTTP with protobuf, "/v1/traces"; empty for OTLP over gRPC.
	Path string
	// TLS is nil for plain text.
	TLS *tls.Config
	// Headers are sent with every request. They are secrets.
	Headers map[string]string
	Gzip    bool
	Timeout time.Duration // Timeout is for one request. 10 s.
	// Admits, unless nil, returns an error for the other end of a connection that must not be used.
	Admits func(net.Addr) error
}

// Client is a queue.Sender of encoded TracesData, or of encoded requests: both have the same field.
type Client struct {
	transport

	timeout time.Duration
	peer    Peer
}

// transport makes one request of encoded messages, which, one after another, are one message.
type transport interface {
	export(ctx context.Context, messages [][]byte) (*coltracepb.ExportTraceServiceResponse, error)
	close() error
}

// New returns a client that has not connected yet: that the endpoint cannot be reached is an error of Send. The error
// here means that the endpoint is none.
func New(o Options) (*Client, error) {
	c := &Client{timeout: cmp.Or(o.Timeout, 10*time.Second), peer: NewPeer(o.Endpoint, o.Headers)}
	if o.Path != "" {
		c.transport = newHTTP(o)
		return c, nil
	}
	connection, err := o.dial()
	if err != nil {
		return nil, fmt.Errorf("OTLP endpoint %q: %w", o.Endpoint, err)
	}
	c.transport = overGRPC{connection, metadata.New(o.Headers)}
	return c, nil
}

// Send makes one request, without copying what is sent. Its errors are those of queue.Sender.
func (c *Client) Send(ctx context.Context, messages [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.export(ctx, messages)
	if err != nil {
		return c.peer.Error(err)
	}
	if p := answer.GetPartialSuccess(); p.GetRejectedSpans() > 0 || p.GetErrorMessage() != "" {
		return &queue.PartialError{Spans: uint64(max(0, p.GetRejectedSpans())), Message: c.peer.Text(p.GetErrorMessage())}
	}
	return nil
}

// Shutdown closes the connection.
func (c *Client) Shutdown(context.Context) error {
	if err := c.close(); err != nil {
		return fmt.Errorf("close the OTLP connection: %w", err)
	}
	return nil
}

type overGRPC struct {
	connection *grpc.ClientConn
	headers    metadata.MD
}

func (g overGRPC) export(ctx context.Context, messages [][]byte) (*coltracepb.ExportTraceServiceResponse, error) {
	answer := &coltracepb.ExportTraceServiceResponse{}
	return answer, g.connection.Invoke(metadata.NewOutgoingContext(ctx, g.headers), coltracepb.TraceService_Export_FullMethodName,
		messages, answer, grpc.ForceCodecV2(Encoded{}))
}

func (g overGRPC) close() error { return g.connection.Close() }

func (o Options) dial() (*grpc.ClientConn, error) {
	creds, proxy := insecure.NewCredentials(), grpc.WithNoProxy()
	if o.TLS != nil {
		creds, proxy = credentials.NewTLS(o.TLS), grpc.EmptyDialOption{}
	}
	compressor := ""
	if o.Gzip {
		compressor = gzip.Name
	}
	return grpc.NewClient(o.Endpoint,
		grpc.WithTransportCredentials(admitting{creds, o.Admits}),
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
}

// admitting asks about the other end before it says anything. A dialer would do that, too, but gRPC uses no proxy
// with one.
type admitting struct {
	credentials.TransportCredentials
	admits func(net.Addr) error
}

func (a admitting) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if a.admits != nil {
		if err := a.admits(c.RemoteAddr()); err != nil {
			return nil, nil, err
		}
	}
	return a.TransportCredentials.ClientHandshake(ctx, authority, c)
}

func (a admitting) Clone() credentials.TransportCredentials {
	return admitting{a.TransportCredentials.Clone(), a.admits}
}
