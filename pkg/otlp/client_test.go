package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// patience is a timeout that passing tests never reach.
const patience = 30 * time.Second

func spans(t *testing.T) [][]byte {
	t.Helper()
	data := harness.Must(proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "a"}}}},
	}}}))(t)
	return [][]byte{data}
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	c := harness.Must(New(o))(t)
	t.Cleanup(func() { _ = c.Shutdown(context.Background()) })
	return c
}

// protocols maps protocols to paths.
var protocols = map[string]string{"grpc": "", "http/protobuf": "/v1/traces"}

func collect(t *testing.T, path string, c *otlptest.Collector, secure *tls.Config) *otlptest.Collector {
	t.Helper()
	if path != "" {
		return otlptest.CollectHTTP(t, c, secure)
	}
	if secure != nil {
		return otlptest.Collect(t, "127.0.0.1:0", c, grpc.Creds(credentials.NewTLS(secure)))
	}
	return otlptest.Collect(t, "127.0.0.1:0", c)
}

func TestOTLPArrivesOverEveryTransport(t *testing.T) {
	ca := harness.Must(harness.NewAuthority())(t)
	server := harness.Must(ca.Issue("server", time.Hour))(t)
	client := harness.Must(ca.Issue("cniscope", time.Hour))(t)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{server}}
	mutual := &tls.Config{
		Certificates: serverTLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: ca.Pool(),
	}
	trusting := &tls.Config{RootCAs: ca.Pool()}
	known := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{client}}

	const refused = "refused" // the text depends on which side notices first
	tests := []struct {
		name           string
		server, client *tls.Config
		fails          string
	}{
		{"plain text", nil, nil, ""},
		{"TLS", serverTLS, trusting, ""},
		{"mutual TLS", mutual, known, ""},
		{"TLS whose CA is not trusted", serverTLS, &tls.Config{}, "certificate signed by unknown authority"},
		{"mutual TLS without a certificate", mutual, trusting, refused},
		{"TLS to a server in plain text", nil, trusting, refused},
	}
	for protocol, path := range protocols {
		for _, tt := range tests {
			t.Run(protocol+", "+tt.name, func(t *testing.T) {
				c := collect(t, path, &otlptest.Collector{}, tt.server.Clone())
				err := newClient(t, Options{Endpoint: c.Addr, Path: path, TLS: tt.client}).Send(t.Context(), spans(t))
				if tt.fails == "" {
					if err != nil || len(c.Got()) != 1 {
						t.Fatalf("%v, arrived: %q", err, c.Got())
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tt.fails) && tt.fails != refused {
					t.Fatalf("got %v", err)
				}
				if r := (*queue.RejectedError)(nil); errors.As(err, &r) {
					t.Error("what somebody can mend would be dropped")
				}
			})
		}
	}
}

func TestHeadersAndCompressionAreSent(t *testing.T) {
	for protocol, path := range protocols {
		for _, gzip := range []bool{false, true} {
			c := collect(t, path, &otlptest.Collector{}, nil)
			e := newClient(t, Options{
				Endpoint: c.Addr, Path: path, Gzip: gzip,
				Headers: map[string]string{"authorization": "Bearer x"},
			})
			// Two operations are one request.
			if err := e.Send(t.Context(), append(spans(t), spans(t)...)); err != nil || len(c.Got()) != 2 || c.Requests != 1 {
				t.Fatalf("%s: %v, %q", protocol, err, c.Got())
			}
			for name, want := range map[string]string{
				"authorization": "Bearer x", "user-agent": "cniscope",
				"content-type": map[string]string{"": "application/grpc"}[path] + map[bool]string{true: Protobuf}[path != ""],
			} {
				if got := c.Headers.Get(name); len(got) != 1 || !strings.HasPrefix(got[0], want) {
					t.Errorf("%s: %s: %q", protocol, name, got)
				}
			}
			harness.Equal(t, c.Compression, map[bool]string{true: "gzip", false: ""}[gzip], protocol, "compression")
		}
	}
}

// containerd's variables do not apply to cniscope.
func TestTheEnvironmentChangesNothing(t *testing.T) {
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
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
	harness.Check(t, newClient(t, Options{Endpoint: c.Addr}).Send(t.Context(), spans(t)))
	if len(c.Headers.Get("leaked")) > 0 || c.Compression != "" {
		t.Errorf("headers %v, compression %q", c.Headers, c.Compression)
	}
}

func TestAnswersSayWhatBecomesOfTheSpans(t *testing.T) {
	busy := harness.Must(status.New(codes.ResourceExhausted,
		"busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)}))(t)
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
	for protocol, path := range protocols {
		for _, tt := range tests {
			if path != "" && tt.name == "too large" {
				continue // over HTTP a 429 without a pause is retried
			}
			t.Run(protocol+", "+tt.name, func(t *testing.T) {
				c := collect(t, path, &otlptest.Collector{Answer: func([]string) (*coltracepb.ExportTracePartialSuccess, error) {
					return tt.partial, tt.err
				}}, nil)
				err := newClient(t, Options{Endpoint: c.Addr, Path: path}).Send(t.Context(), spans(t))
				if tt.err != nil && !strings.Contains(fmt.Sprint(err), status.Convert(tt.err).Message()) {
					t.Errorf("%v does not say why", err)
				}
				got := ""
				var r *queue.RejectedError
				var th *queue.ThrottledError
				var p *queue.PartialError
				switch {
				case errors.As(err, &r):
					got = rejected
				case errors.As(err, &th):
					got = later
					harness.Equal(t, th.After, 7*time.Second, "after")
				case errors.As(err, &p):
					got = part
					if p.Spans != uint64(tt.partial.GetRejectedSpans()) || p.Message != tt.partial.GetErrorMessage() {
						t.Errorf("%+v", p)
					}
				case err != nil:
					got = again
				}
				harness.Equal(t, got, tt.want, err)
				harness.Equal(t, c.Requests, 1, "asked times")
			})
		}
	}
}

func TestAnEndpointThatDoesNotAnswerIsGivenUp(t *testing.T) {
	for protocol, path := range protocols {
		block := make(chan struct{})
		c := collect(t, path, &otlptest.Collector{Answer: func([]string) (*coltracepb.ExportTracePartialSuccess, error) {
			<-block
			return nil, nil
		}}, nil)
		err := newClient(t, Options{Endpoint: c.Addr, Path: path, Timeout: 50 * time.Millisecond}).Send(t.Context(), spans(t))
		if close(block); err == nil || !strings.Contains(strings.ToLower(err.Error()), "deadline") {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// Over HTTP the status decides, from a backend or a proxy.
func TestAnHTTPStatusSaysWhatBecomesOfTheSpans(t *testing.T) {
	const rejected, again = -1, 0
	for _, tt := range []struct {
		status int
		after  string
		want   time.Duration
	}{
		{400, "", rejected},
		{400, "5", rejected},
		{413, "", rejected},
		{422, "", rejected},
		{500, "", rejected},
		{508, "", rejected},
		{401, "", again},
		{403, "", again},
		{404, "", again},
		{405, "", again},
		{301, "", again},
		{307, "", again},
		{408, "", again},
		{429, "", again},
		{502, "", again},
		{503, "", again},
		{504, "", again},
		{503, "soon", again},
		{503, "-1", again},
		{429, "7", 7 * time.Second},
		{503, "7", 7 * time.Second},
		{503, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59 * time.Minute},
	} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Retry-After", tt.after)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
		}))
		err := newClient(t, Options{Endpoint: s.Listener.Addr().String(), Path: "/otlp"}).Send(t.Context(), spans(t))
		var r *queue.RejectedError
		var th *queue.ThrottledError
		switch is := errors.As(err, &th); {
		case err == nil, asked != 1, !strings.Contains(err.Error(), strconv.Itoa(tt.status)):
			t.Errorf("%d, asked %d times: %v", tt.status, asked, err)
		case errors.As(err, &r) != (tt.want == rejected), is != (tt.want > 0), is &&
			th.After.Truncate(time.Minute) != tt.want.Truncate(time.Minute):
			t.Errorf("%d, Retry-After %q: %#v", tt.status, tt.after, err)
		}
		s.Close()
	}
}

// A forbidden address receives no byte.
func TestWhoIsNotAdmittedIsSentNothing(t *testing.T) {
	for protocol, path := range protocols {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Check(t, err)
		sent := make(chan int, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				sent <- -1
				return
			}
			defer c.Close()
			n, _ := c.Read(make([]byte, 1))
			sent <- n
		}()
		err = newClient(t, Options{
			Endpoint: l.Addr().String(), Path: path,
			Admits: func(a net.Addr) error { return errors.New("not " + a.Network()) },
		}).
			Send(t.Context(), spans(t))
		if n := <-sent; n != 0 || err == nil || !strings.Contains(err.Error(), "not tcp") {
			t.Errorf("%s: %d bytes, %v", protocol, n, err)
		}
		_ = l.Close()
	}
}

// Before: net/http leaves a connection to the caller after an answer of 101, so that the timeout did not end the read.
func TestAnAnswerWithoutAnEndIsGivenUp(t *testing.T) {
	for name, head := range map[string]string{
		"a protocol switch": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"a stream":          "HTTP/1.1 200 OK\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := w.(http.Hijacker).Hijack()
				harness.Check(t, err)
				_, _ = io.WriteString(c, head)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
				close(gone)
			}))
			defer server.Close()
			c := newClient(t, Options{Endpoint: server.Listener.Addr().String(), Path: "/v1/traces"})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := c.Send(ctx, spans(t)); err == nil {
				t.Error("the spans count as delivered")
			}
			<-gone // the connection is closed, too
		})
	}
}
