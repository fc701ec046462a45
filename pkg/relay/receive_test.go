package relay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// exporters are OpenTelemetry's, like containerd's.
func exporters(addr string) map[string]func(context.Context) (*otlptrace.Exporter, error) {
	return map[string]func(context.Context) (*otlptrace.Exporter, error){
		"http/protobuf": func(ctx context.Context) (*otlptrace.Exporter, error) {
			return otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(addr), otlptracehttp.WithInsecure())
		},
		"http/protobuf, gzip": func(ctx context.Context) (*otlptrace.Exporter, error) {
			return otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(addr), otlptracehttp.WithInsecure(),
				otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		},
		"grpc": func(ctx context.Context) (*otlptrace.Exporter, error) {
			return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(addr), otlptracegrpc.WithInsecure())
		},
		"grpc, gzip": func(ctx context.Context) (*otlptrace.Exporter, error) {
			return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(addr), otlptracegrpc.WithInsecure(),
				otlptracegrpc.WithCompressor("gzip"))
		},
	}
}

func export(t *testing.T, exporter *otlptrace.Exporter, names ...string) {
	t.Helper()
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	for _, name := range names {
		_, s := provider.Tracer("").Start(t.Context(), name)
		s.SetAttributes(attribute.String("sandbox.id", one))
		s.End()
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRealExportersAreServedAndARealCollectorGetsWhatTheySent(t *testing.T) {
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
	r := start(t, Options{}, &otlp.Options{Endpoint: c.Addr, Headers: map[string]string{"x-scope-orgid": "nodes"}})
	want := 0
	for name, exporter := range exporters(r.addr) {
		t.Run(name, func(t *testing.T) {
			e := harness.Must(exporter(t.Context()))(t)
			export(t, e, "cni.setup_pod_network", "unrelated "+name)
			want++
			harness.Until(t, "they arrive", func() bool { return slices.Contains(c.Got(), "unrelated "+name) })
			harness.Until(t, "the span is told", func() bool { return len(r.told()) == want })
		})
	}
	harness.EqualSlices(t, c.Headers.Get("x-scope-orgid"), []string{"nodes"}, "the collector got the header")
	harness.Until(t, "all is settled", func() bool { return r.Counts().Waiting == 0 })
	if s := r.Counts(); s.Received != 4 || s.Sent != 4 || s.Spans != 8 || s.Told != 4 ||
		s.Lost()+s.Malformed+s.Retries != 0 {
		t.Errorf("%+v", s)
	}
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	harness.Check(t, z.Close())
	return b.Bytes()
}

// A request is forwarded unchanged, whatever its compression and the upstream's protocol, with unknown fields.
func TestARequestGoesOnByteForByte(t *testing.T) {
	message := protowire.AppendString(protowire.AppendTag(recorded(t, "containerd-2.3.7.pb"), 99, protowire.BytesType),
		"of a later version")
	for name, test := range map[string]struct {
		body   []byte
		header []string
		path   string
	}{
		"plain, to gRPC": {message, nil, ""},
		"gzip, to gRPC":  {zip(t, message), []string{"Content-Encoding: gzip"}, ""},
		"gzip, to HTTP":  {zip(t, message), []string{"Content-Encoding: gzip"}, "/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			bodies := make(chan []byte, 1)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
				body, _ := io.ReadAll(in.Body)
				bodies <- body
				if test.path == "" {
					out.Header().Set("Content-Type", "application/grpc")
					out.Header().Set("Trailer", "Grpc-Status")
					_, _ = out.Write(make([]byte, grpcPrefix))
					out.Header().Set("Grpc-Status", "0")
				}
			}))
			s.Config.Protocols = &http.Protocols{}
			s.Config.Protocols.SetHTTP1(test.path != "")
			s.Config.Protocols.SetUnencryptedHTTP2(test.path == "")
			s.Start()
			t.Cleanup(s.Close)
			r := start(t, Options{}, &otlp.Options{Endpoint: s.Listener.Addr().String(), Path: test.path, Timeout: patience})
			accepted(t, r.addr, test.body, test.header...)
			harness.Until(t, "it arrives", func() bool { return r.Counts().Sent == 1 })
			want := message
			if test.path == "" {
				want = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
			}
			if !bytes.Equal(<-bodies, want) {
				t.Error("the body is another")
			}
		})
	}
}

func TestHostileRequestsAreRefusedAndCounted(t *testing.T) {
	r := start(t, Options{}, to(harness.Address(t)))
	good := encode(t, &tracepb.Span{Name: "x"})
	bomb := zip(t, make([]byte, maxMessage+1))
	for name, test := range map[string]struct {
		body   []byte
		header string
		want   int
	}{
		"JSON":                         {[]byte("{}"), "Content-Type: application/json", http.StatusUnsupportedMediaType},
		"no type":                      {good, "Content-Type: ", http.StatusUnsupportedMediaType},
		"what is no protobuf":          {[]byte("hello"), "X: ", http.StatusBadRequest},
		"a request cut short":          {good[:len(good)-1], "X: ", http.StatusBadRequest},
		"what is no gzip":              {good, "Content-Encoding: gzip", http.StatusBadRequest},
		"gzip cut short":               {zip(t, good)[:12], "Content-Encoding: gzip", http.StatusBadRequest},
		"another compression":          {good, "Content-Encoding: br", http.StatusBadRequest},
		"too long":                     {make([]byte, 4<<20+1), "X: ", http.StatusRequestEntityTooLarge},
		"too long once it is unpacked": {bomb, "Content-Encoding: gzip", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Equal(t, post(t, r.addr, test.body, test.header), test.want, "answered")
		})
	}
	unread := r.receive(false, func() ([]byte, error) { return nil, io.ErrUnexpectedEOF })
	harness.Equal(t, faultOf(unread), errUnread, "of a client that is gone")
	if s := r.Counts(); s.Malformed != 7 || s.TooLarge != 2 || s.Unread != 1 || s.Received != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	accepted(t, r.addr, good)
}

// raw sends bytes unchanged.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal([]byte, any) error   { return nil }
func (raw) Name() string                  { return "proto" }

func TestHostileCallsAreRefused(t *testing.T) {
	r := start(t, Options{}, to(harness.Address(t)))
	conn := harness.Must(grpc.NewClient(r.addr, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	longest := protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), make([]byte, maxMessage-6))
	harness.Equal(t, len(longest), maxMessage, "bytes of the longest")
	for name, test := range map[string]struct {
		method string
		body   []byte
		want   codes.Code
	}{
		"a good one":          {coltracepb.TraceService_Export_FullMethodName, encode(t, &tracepb.Span{Name: "x"}), codes.OK},
		"an empty one":        {coltracepb.TraceService_Export_FullMethodName, nil, codes.OK},
		"the longest":         {coltracepb.TraceService_Export_FullMethodName, longest, codes.OK},
		"what is no protobuf": {coltracepb.TraceService_Export_FullMethodName, []byte("hello"), codes.InvalidArgument},
		"too long": {
			coltracepb.TraceService_Export_FullMethodName, make([]byte, maxMessage+1),
			codes.ResourceExhausted,
		},
		"another service": {"/opentelemetry.proto.collector.logs.v1.LogsService/Export", nil, codes.Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			err := conn.Invoke(t.Context(), test.method, test.body, nil, grpc.ForceCodec(raw{}))
			harness.Equal(t, status.Code(err), test.want, err)
		})
	}
	if s := r.Counts(); s.Malformed != 1 || s.TooLarge != 1 || s.Unread != 0 {
		t.Errorf("%+v", s)
	}
}

// Four requests are read at a time. Another one waits 5 s.
func TestReadingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.Must(New(Options{Listen: "127.0.0.1:0"}))(t)
		defer r.Close(t.Context())
		asked := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			r.slotted(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })(w,
				httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/traces", http.NoBody))
			return w.Code
		}
		for range 3 {
			r.slots <- struct{}{}
		}
		for range 2 {
			harness.Equal(t, asked(t.Context()), http.StatusTeapot, "with a free slot")
		}
		r.slots <- struct{}{}
		began := time.Now()
		harness.Equal(t, asked(t.Context()), http.StatusServiceUnavailable, "without a free slot")
		harness.Equal(t, time.Since(began), readTime, "it waited")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		harness.Equal(t, asked(gone), http.StatusServiceUnavailable, "by a client that is gone")
		harness.Equal(t, r.Counts().Unread, 2, "unread")
	})
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:4319": true, "127.0.0.9:4319": true, "[::1]:4319": true,
		"": false, ":4319": false, "0.0.0.0:4319": false, "[::]:4319": false, "10.0.0.1:4319": false,
		"localhost:4319": false, "127.0.0.1": false, "127.0.0.1:http": false,
	} {
		r, err := New(Options{Listen: address})
		harness.Equal(t, (err == nil), ok, address, err)
		if err == nil {
			r.Close(t.Context())
		}
	}
}
