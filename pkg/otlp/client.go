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

// Options configure a Client. Of the environment they use only the proxy, and only with TLS.
type Options struct {
	Endpoint string
	// Path selects OTLP/HTTP, such as "/v1/traces"; empty selects gRPC.
	Path    string
	TLS     *tls.Config
	Headers map[string]string
	Gzip    bool
	Timeout time.Duration // per request; default 10 s
	Admits  func(net.Addr) error
}

// Client is a queue.Sender of encoded TracesData or requests; both use the same field.
type Client struct {
	transport

	timeout time.Duration
	peer    Peer
}

type transport interface {
	export(ctx context.Context, messages [][]byte) (*coltracepb.ExportTraceServiceResponse, error)
	close() error
}

// New returns a client that connects at the first Send. It fails if the endpoint is invalid.
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

// Send sends one request without copying. Its errors are those of queue.Sender.
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
	return answer, g.connection.Invoke(metadata.NewOutgoingContext(ctx, g.headers),
		coltracepb.TraceService_Export_FullMethodName,
		messages, answer, grpc.ForceCodecV2(Encoded{}))
}

func (g overGRPC) close() error { return g.connection.Close() }

func (o Options) dial() (*grpc.ClientConn, error) {
	creds, target, through := insecure.NewCredentials(), o.Endpoint, []grpc.DialOption{grpc.WithNoProxy()}
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
		target, through = tunneled(o.Endpoint)
	}
	compressor := ""
	if o.Gzip {
		compressor = gzip.Name
	}
	return grpc.NewClient(target, append(through,
		grpc.WithTransportCredentials(admitting{creds, o.Admits}),
		grpc.WithUserAgent("cniscope"),
		grpc.WithDisableServiceConfig(), // DNS is for addresses only
		grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor)),
		// gRPC backs off up to 2 minutes; the queue needs an attempt every 30 s.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 10 * time.Second,
			},
			MinConnectTimeout: 10 * time.Second,
		}),
		// A dead connection is closed after 20 s (TCP_USER_TIMEOUT), not 15 minutes. Servers refuse pings more often than
		// every 5 minutes.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Minute, Timeout: 20 * time.Second}),
	)...)
}

// admitting checks the remote address before the handshake. A custom dialer would switch off the proxy.
type admitting struct {
	credentials.TransportCredentials
	admits func(net.Addr) error
}

func (a admitting) ClientHandshake(
	ctx context.Context, authority string, c net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
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
