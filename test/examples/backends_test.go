//go:build linux

package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const (
	jaegerConfig    = "../../examples/jaeger/config.yaml"
	collectorConfig = "../../examples/collector/config.yaml"
	recording       = "../../examples/recordings/three-pods.rec"
)

// transports are ports and paths of receivers.
var transports = map[string][2]string{"grpc": {"4317", ""}, "http/protobuf": {"4318", "/v1/traces"}}

// Jaeger serves a recorded run of either transport, and listens on loopback alone.
func TestJaeger(t *testing.T) {
	each(t, func(t *testing.T, program string, to [2]string) {
		j := start(t, jaegerConfig, nil)
		show(t, program, "--otlp", j.otlp(to))
		serves(t, program, "http://"+j.at("16686"), "")
		if body := harness.Must(get(t, "http://"+j.at("16686")+"/api/services"))(t); strings.Contains(body, "jaeger") {
			t.Errorf("Jaeger's own traces are among them: %s", body)
		}
		for _, address := range listeners(t, j.pid) {
			if !strings.HasPrefix(address, "127.0.0.1:") {
				t.Errorf("it listens on %s", address)
			}
		}
	})
}

func TestCollector(t *testing.T) { each(t, collect) }

func collect(t *testing.T, program string, to [2]string) {
	tool(t, "jaeger")
	backend := harness.Must(rig.StartJaeger(t.Context(), rig.JaegerOptions{}))(t)
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	c := start(t, collectorConfig, strings.NewReplacer(
		"jaeger.example:4317", strings.TrimPrefix(backend.OTLP(), "http://"),
		"decision_wait: 30s", "decision_wait: 1s", // shorter waits for a test
		"metrics_flush_interval: 15s", "metrics_flush_interval: 1s",
	))
	show(t, program, "--otlp", c.otlp(to))
	serves(t, program, backend.QueryURL(), `"code":2`)
	serves(t, program, backend.QueryURL(), `"cniscope.slow","value":{"boolValue":true}`)
	harness.Eventually(t, func() error {
		text, err := get(t, "http://"+c.at("8889")+"/metrics")
		if err != nil {
			return err
		}
		for _, want := range []string{
			`traces_span_metrics_duration_seconds_bucket\{[^}]*cni_plugin="host-local"[^}]*k8s_node_name="rig-node"`,
			`traces_span_metrics_calls_total\{[^}]*cniscope_kind="command"[^}]*span_name="iptables"`,
			`traces_span_metrics_calls_total\{[^}]*span_name="CNI ADD"[^}]*status_code="STATUS_CODE_ERROR"`,
		} {
			if !regexp.MustCompile(want).MatchString(text) {
				return fmt.Errorf("no %s in\n%s", want, text)
			}
		}
		if strings.Contains(text, "slow-0") {
			t.Fatal("a pod is in the metrics")
		}
		return nil
	})
}

// collector is a Jaeger binary with a Collector configuration on free ports.
type collector struct {
	ports map[string]string
	pid   int
}

func (c *collector) at(port string) string { return c.ports[port] }

func (c *collector) otlp(to [2]string) string { return "http://" + c.at(to[0]) + to[1] }

func start(t *testing.T, config string, more *strings.Replacer) *collector {
	t.Helper()
	binary := tool(t, "jaeger")
	data := harness.Must(os.ReadFile(config))(t)
	c := &collector{ports: map[string]string{}}
	text := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).ReplaceAllStringFunc(string(data), func(address string) string {
		c.ports[strings.TrimPrefix(address, "127.0.0.1:")] = harness.Address(t)
		return c.ports[strings.TrimPrefix(address, "127.0.0.1:")]
	})
	if more != nil {
		text = more.Replace(text)
	}
	moved := filepath.Join(t.TempDir(), "config.yaml")
	harness.Check(t, os.WriteFile(moved, []byte(text), 0o600))
	cmd := exec.Command(binary, "--config", moved)
	harness.Beside(t, cmd)
	c.pid = cmd.Process.Pid
	for _, to := range transports {
		harness.Eventually(t, func() error {
			conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", c.at(to[0]))
			if err == nil {
				_ = conn.Close()
			}
			return err
		})
	}
	return c
}

func each(t *testing.T, test func(t *testing.T, program string, to [2]string)) {
	t.Helper()
	program := harness.Must(scope.Build(t.Context(), t.TempDir()))(t)
	for transport, to := range transports {
		t.Run(transport, func(t *testing.T) { test(t, program, to) })
	}
}

func show(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"show", recording}, args...)...)
	cmd.Stderr = t.Output()
	return string(harness.Must(cmd.Output())(t))
}

// serves waits until a Jaeger has the recorded traces that contain a text.
func serves(t *testing.T, program, jaeger, text string) {
	t.Helper()
	sent := map[string]string{}
	for trace := range strings.Lines(show(t, program, "--format", "json")) {
		if strings.Contains(trace, text) {
			maps.Copy(sent, names(t, trace))
		}
	}
	if len(sent) == 0 {
		t.Fatalf("no trace contains %q", text)
	}
	t.Logf("%d spans of traces with %q", len(sent), text)
	harness.Eventually(t, func() error {
		body, err := get(t, jaeger+"/api/v3/traces?query.service_name=cniscope&query.num_traces=100&query.raw_traces=true"+
			"&query.start_time_min=1970-01-01T00:00:00Z&query.start_time_max=2200-01-01T00:00:00Z")
		if err != nil {
			return err
		}
		got := names(t, body)
		for id, name := range sent {
			if got[id] != name {
				return fmt.Errorf("of %d spans it has %d, and %s is %q, not %q", len(sent), len(got), id, got[id], name)
			}
		}
		return nil
	})
}

type traces struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct{ SpanID, Name string }
		}
	}
}

// names reads OTLP JSON, or Jaeger's answers, and returns span names by id.
func names(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var some struct {
			traces
			Result traces
		}
		harness.Check(t, d.Decode(&some))
		for _, r := range append(some.ResourceSpans, some.Result.ResourceSpans...) {
			for _, scope := range r.ScopeSpans {
				for _, span := range scope.Spans {
					all[span.SpanID] = span.Name
				}
			}
		}
	}
	return all
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode == http.StatusServiceUnavailable { // not ready
		err = errors.New(string(body))
	}
	return string(body), err
}

func listeners(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ss", "-Hltnp").Output()
	if err != nil {
		t.Skipf("ss (iproute2): %v", err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && strings.Contains(line, fmt.Sprintf("pid=%d,", pid)) {
			addresses = append(addresses, fields[3])
		}
	}
	if len(addresses) == 0 {
		t.Error("it listens nowhere")
	}
	return addresses
}
