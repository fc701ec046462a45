package export

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
)

func newOTLP(t *testing.T, o OTLPOptions) Exporter {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	e, err := NewOTLP(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	return e
}

func TestOTLPArrivesOverEveryTransport(t *testing.T) {
	ca, err := harness.NewAuthority()
	harness.Check(t, err)
	server, err := ca.Issue("server", time.Hour)
	harness.Check(t, err)
	client, err := ca.Issue("cniscope", time.Hour)
	harness.Check(t, err)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{server}}
	mutual := &tls.Config{Certificates: serverTLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()}
	trusting := &tls.Config{RootCAs: ca.Pool()}
	known := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{client}}

	tests := []struct {
		name           string
		server, client *tls.Config
		fails          string
	}{
		{"plain text", nil, nil, ""},
		{"TLS", serverTLS, trusting, ""},
		{"mutual TLS", mutual, known, ""},
		{"TLS whose CA is not trusted", serverTLS, &tls.Config{}, "certificate signed by unknown authority"},
		{"mutual TLS without a certificate", mutual, trusting, "Unavailable"},
		{"TLS to a server in plain text", nil, trusting, "first record does not look like a TLS handshake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var opts []grpc.ServerOption
			if tt.server != nil {
				opts = append(opts, grpc.Creds(credentials.NewTLS(tt.server)))
			}
			c := listen(t, "127.0.0.1:0", &collector{}, opts...)
			err := newOTLP(t, OTLPOptions{Endpoint: c.addr, TLS: tt.client}).Export(t.Context(), operation("a"))
			if tt.fails == "" {
				if err != nil || len(c.got()) != 1 {
					t.Fatalf("%v, arrived: %q", err, c.got())
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Fatalf("got %v", err)
			}
			if r := (*queue.RejectedError)(nil); errors.As(err, &r) {
				t.Error("what somebody can mend would be dropped")
			}
		})
	}
}

func TestHeadersAndCompressionAreSent(t *testing.T) {
	for _, gzip := range []bool{false, true} {
		c := listen(t, "127.0.0.1:0", &collector{})
		e := newOTLP(t, OTLPOptions{Endpoint: c.addr, Gzip: gzip, Headers: map[string]string{"authorization": "Bearer x"}})
		if err := e.Export(t.Context(), operation("a")); err != nil {
			t.Fatal(err)
		}
		if got := c.headers.Get("authorization"); len(got) != 1 || got[0] != "Bearer x" {
			t.Errorf("authorization: %q", got)
		}
		if got := c.headers.Get("user-agent"); len(got) != 1 || !strings.HasPrefix(got[0], "cniscope ") {
			t.Errorf("user-agent: %q", got)
		}
		if got := c.headers.Get("content-type"); len(got) != 1 || got[0] != "application/grpc" {
			t.Errorf("content-type: %q", got)
		}
		if want := map[bool]string{true: "gzip", false: ""}[gzip]; c.compression != want {
			t.Errorf("compression %q, want %q", c.compression, want)
		}
	}
}

// containerd's own variables reach what it starts; they are containerd's.
func TestTheEnvironmentChangesNothing(t *testing.T) {
	c := listen(t, "127.0.0.1:0", &collector{})
	for name, value := range map[string]string{
		"OTEL_SERVICE_NAME":                     "containerd",
		"OTEL_RESOURCE_ATTRIBUTES":              "service.name=containerd,a=b",
		"OTEL_EXPORTER_OTLP_ENDPOINT":           "https://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":    "https://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_HEADERS":            "leaked=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":     "leaked=1",
		"OTEL_EXPORTER_OTLP_COMPRESSION":        "gzip",
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
		"OTEL_EXPORTER_OTLP_TIMEOUT":            "1",
		"OTEL_EXPORTER_OTLP_INSECURE":           "false",
		"OTEL_EXPORTER_OTLP_PROTOCOL":           "http/protobuf",
	} {
		t.Setenv(name, value)
	}
	if err := newOTLP(t, OTLPOptions{Endpoint: c.addr}).Export(t.Context(), operation("a")); err != nil {
		t.Fatal(err)
	}
	if len(c.headers.Get("leaked")) > 0 || c.compression != "" {
		t.Errorf("headers %v, compression %q", c.headers, c.compression)
	}
	if !strings.Contains(c.resource, "cniscope") || strings.Contains(c.resource, "containerd") {
		t.Errorf("resource %s", c.resource)
	}
}

func TestAnswersSayWhatBecomesOfTheSpans(t *testing.T) {
	busy, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	const rejected, again, later, part = "rejected", "again", "later", "part"
	tests := []struct {
		name    string
		partial *coltracepb.ExportTracePartialSuccess
		err     error
		want    string
	}{
		{"all taken", nil, nil, ""},
		{"an empty partial success", &coltracepb.ExportTracePartialSuccess{}, nil, ""},
		{"some refused", &coltracepb.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"}, nil, part},
		{"a warning", &coltracepb.ExportTracePartialSuccess{ErrorMessage: "slow down"}, nil, part},
		{"bad spans", nil, status.Error(codes.InvalidArgument, "no"), rejected},
		{"a handler that failed", nil, errors.New("oops"), rejected},
		{"too large", nil, status.Error(codes.ResourceExhausted, "larger than max"), rejected},
		{"throttled", nil, busy.Err(), later},
		{"not now", nil, status.Error(codes.Unavailable, "starting"), again},
		{"wrong token", nil, status.Error(codes.Unauthenticated, "who?"), again},
		{"no such service", nil, status.Error(codes.Unimplemented, "what?"), again},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := listen(t, "127.0.0.1:0", &collector{answer: func([]string) (*coltracepb.ExportTracePartialSuccess, error) {
				return tt.partial, tt.err
			}})
			err := newOTLP(t, OTLPOptions{Endpoint: c.addr}).Export(t.Context(), operation("a"))
			got := ""
			var r *queue.RejectedError
			var th *queue.ThrottledError
			var p *queue.PartialError
			switch {
			case errors.As(err, &r):
				got = rejected
			case errors.As(err, &th):
				got = later
				if th.After != 7*time.Second {
					t.Errorf("after %v", th.After)
				}
			case errors.As(err, &p):
				got = part
				if p.Spans != uint64(tt.partial.GetRejectedSpans()) || p.Message != tt.partial.GetErrorMessage() {
					t.Errorf("%+v", p)
				}
			case err != nil:
				got = again
			}
			if got != tt.want {
				t.Errorf("%v is %q, want %q", err, got, tt.want)
			}
			if c.requests != 1 {
				t.Errorf("asked %d times", c.requests)
			}
		})
	}
}

func TestAnEndpointThatDoesNotAnswerIsGivenUp(t *testing.T) {
	block := make(chan struct{})
	c := listen(t, "127.0.0.1:0", &collector{answer: func([]string) (*coltracepb.ExportTracePartialSuccess, error) {
		<-block
		return nil, nil
	}})
	defer close(block)
	err := newOTLP(t, OTLPOptions{Endpoint: c.addr, Timeout: 50 * time.Millisecond}).Export(t.Context(), operation("a"))
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}
