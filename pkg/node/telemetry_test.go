package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

func TestPulse(t *testing.T) {
	const s = int64(time.Second)
	for name, test := range map[string]struct {
		story func(*pulse)
		open  bool
		now   int64
		want  string
	}{
		"nothing ever came":            {func(*pulse) {}, false, 1000 * s, "ok"},
		"nothing is open, nothing due": {func(p *pulse) { p.begin(10*s, true); p.end() }, false, 1000 * s, "ok"},
		"a call has begun":             {func(p *pulse) { p.begin(10*s, true); p.end() }, true, 12 * s, "ok"},
		"a call is open, ticks come":   {func(p *pulse) { p.begin(10*s, true); p.end() }, true, 12 * s, "ok"},
		"a call is open, no ticks":     {func(p *pulse) { p.begin(10*s, true); p.end() }, true, 40 * s, "no tick for 30s, though calls are open"},
		"other events are no ticks": {
			func(p *pulse) { p.begin(10*s, true); p.end(); p.begin(39*s, false); p.end() },
			true, 40 * s, "no tick for 30s, though calls are open",
		},
		"an event is being taken":    {func(p *pulse) { p.begin(10*s, true) }, false, 11 * s, "ok"},
		"an event is not done with":  {func(p *pulse) { p.begin(10*s, true) }, false, 70 * s, "stuck for 1m0s at one event"},
		"one that happened long ago": {func(p *pulse) { p.begin(60*s, true); p.end(); p.begin(1*s, true); p.end() }, true, 61 * s, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			var p pulse
			test.story(&p)
			report, ok := p.check(test.now, test.open)
			if report != test.want || ok != (test.want == "ok") {
				t.Errorf("got %q, %v", report, ok)
			}
		})
	}
}

// observed is a node without sources: a recording is what it observes.
func observed(t *testing.T, toml string) (*node, *observer) {
	t.Helper()
	o := harness.Must(config.Parse("test.toml", []byte(toml)))(t)
	n := harness.Must(newNode(o, "test", slog.New(slog.NewTextHandler(t.Output(), nil)), &slog.LevelVar{}))(t)
	t.Cleanup(func() { n.close(context.Background(), false) })
	sources := &observer{log: n.log, sources: []source.Source{probe.NewSource(probe.Options{}, nil)}}
	n.telemetry = serveTelemetry(o, n, sources)
	t.Cleanup(n.telemetry.close)
	n.consume(o)
	reader := harness.Must(record.Open(t.Context(), "../../examples/recordings/three-pods.rec"))(t)
	defer reader.Close()
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			n.flush(t.Context())
			n.consume(o)
			return n, sources
		}
		harness.Check(t, err)
		n.take(e)
	}
}

// settle waits until consumers have taken what a node has taken.
func settle(t *testing.T, n *node) {
	n.consumers.close(t.Context())
	n.consume(config.Default())
}

func ask(t *testing.T, n *node, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.telemetry.server.Address()+path, nil)
	harness.Check(t, err)
	answer, err := http.DefaultClient.Do(r)
	harness.Check(t, err)
	defer answer.Body.Close()
	body := harness.Must(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(body)
}

func TestHealthAndReadiness(t *testing.T) {
	n, sources := observed(t, "[metrics]\nlisten = \"127.0.0.1:0\"\n")
	if status, body := ask(t, n, "/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %d %q", status, body)
	}
	if status, body := ask(t, n, "/readyz"); status != http.StatusServiceUnavailable || body != "kernel probe: not attached\nnri: off\n" {
		t.Errorf("readyz: %d %q", status, body)
	}
	if _, ok := n.ready(sources); ok {
		t.Error("ready without a probe")
	}
	// Whatever holds the node's lock, a kubelet gets its answer.
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pulse.last.Store(clock.Monotonic() - int64(time.Hour))
	n.pulse.taking.Store(true)
	if status, body := ask(t, n, "/healthz"); status != http.StatusServiceUnavailable || body != "stuck for 1h0m0s at one event\n" {
		t.Errorf("healthz of a stuck node: %d %q", status, body)
	}
}

// An address that cannot be had costs the metrics, not the traces.
func TestAnAddressThatCannotBeHad(t *testing.T) {
	n, _ := observed(t, "[metrics]\nlisten = \"127.0.0.1:0\"\n")
	other, _ := observed(t, "[metrics]\nlisten = \""+n.telemetry.server.Address()+"\"\n")
	if other.telemetry != nil {
		t.Error("two listen at one address")
	}
}

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
