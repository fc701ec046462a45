package node

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

func TestAnEndpointThatRepeatsTheCredentialsIsNotQuoted(t *testing.T) {
	const token = "Xq7CanaryTokenZ9t4421"
	backend := &otlptest.Echo{}
	for _, spell := range spelled.Ways() {
		backend.Ways = append(backend.Ways, spell)
	}
	o := harness.Must(config.Parse("test.toml", []byte(`[export.otlp]
endpoint = "http://`+otlptest.Backend(t, "127.0.0.1:0", backend)+`"
headers = { authorization = "Bearer `+token+`" }
[metrics]
listen = "127.0.0.1:0"
[runtime]
socket = "`+t.TempDir()+`/none.sock"
[nri]
enabled = false
`)))(t)
	said := &harness.Log{}
	clean := func(what, text string) {
		t.Helper()
		for way := range spelled.Ways() {
			if window, is := spelled.Seen(text, way, token); is {
				t.Errorf("%s: %q leaves in %s: %s", way, window, what, text)
			}
		}
	}

	n := harness.Must(newNode(o, "test", slog.New(slog.NewTextHandler(said, nil)), &slog.LevelVar{}))(t)
	t.Cleanup(func() { n.close(context.Background(), false) })
	sources := &observer{log: n.log, sources: []source.Source{}}
	n.telemetry = serveTelemetry(o, n, sources)
	t.Cleanup(n.telemetry.close)
	n.out.Take(&pipeline.Judged{Trace: trace.Of(&tracepb.ResourceSpans{})})
	harness.Until(t, "the log says that the export fails", func() bool { return strings.Contains(said.String(), "invalid credentials") })
	clean("the log", said.String())
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		_, body := ask(t, n, path)
		clean(path, body)
	}
}
