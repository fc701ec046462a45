package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

// echo is an endpoint that repeats the credentials, in a spelling of its own each time.
type echo struct {
	coltracepb.UnimplementedTraceServiceServer
	mu   sync.Mutex
	ways []func(string) string
}

func (e *echo) Export(ctx context.Context, _ *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	way := e.ways[0]
	e.ways = append(e.ways[1:], way)
	headers, _ := metadata.FromIncomingContext(ctx)
	_, token, _ := strings.Cut(headers.Get("authorization")[0], " ")
	return nil, status.Error(codes.Unauthenticated, "invalid credentials ["+way(token)+"] for user")
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func TestAnEndpointThatRepeatsTheCredentialsIsNotQuoted(t *testing.T) {
	const token = "Xq7CanaryTokenZ9t4421"
	backend := &echo{}
	for _, spell := range spelled.Ways() {
		backend.ways = append(backend.ways, spell)
	}
	o, err := config.Parse("test.toml", []byte(`[export.otlp]
endpoint = "http://`+otlptest.Backend(t, "127.0.0.1:0", backend)+`"
headers = { authorization = "Bearer `+token+`" }
[metrics]
listen = "127.0.0.1:0"
[runtime]
socket = "`+t.TempDir()+`/none.sock"
[nri]
enabled = false
`))
	harness.Check(t, err)
	said := &buffer{}
	clean := func(what, text string) {
		t.Helper()
		for way := range spelled.Ways() {
			if window, is := spelled.Seen(text, way, token); is {
				t.Errorf("%s: %q leaves in %s: %s", way, window, what, text)
			}
		}
	}

	n, err := newNode(o, slog.New(slog.NewTextHandler(said, nil)), &slog.LevelVar{})
	harness.Check(t, err)
	t.Cleanup(func() { n.close(context.Background(), false) })
	sources := &observer{log: n.log, sources: []source.Source{}}
	n.telemetry = serveTelemetry(o, n, sources)
	t.Cleanup(n.telemetry.close)
	n.out.Take(&pipeline.Judged{Trace: trace.Trace{Spans: &tracepb.ResourceSpans{}}})
	harness.Until(t, "the log says that the export fails", func() bool { return strings.Contains(said.String(), "invalid credentials") })
	clean("the log", said.String())
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		_, body := ask(t, n, path)
		clean(path, body)
	}

	// Doctor's report is what doctor prints and what /v1/doctor answers to readers.
	flags := doctorFlags{answers: 5 * time.Second, kubelet: "127.0.0.1:1"}
	for range backend.ways {
		clean("the test span", flags.options(o).Send(t.Context()).Error())
	}
	var report strings.Builder
	harness.Check(t, doctor.Examine(t.Context(), flags.options(o)).Text(&report))
	if !strings.Contains(report.String(), "invalid credentials") || !strings.Contains(report.String(), "[export.otlp] headers") {
		t.Errorf("the cause and the remedy are missing:\n%s", report.String())
	}
	clean("doctor", report.String())
}
