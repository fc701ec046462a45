//go:build linux

package examples

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/tied"
)

const (
	jaegerConfig    = "../../examples/jaeger/config.yaml"
	collectorConfig = "../../examples/collector/config.yaml"
	recording       = "../../examples/recordings/three-pods.rec"
)

// Jaeger with the example's configuration serves a recorded run, and listens on loopback alone.
func TestJaeger(t *testing.T) {
	j := start(t, jaegerConfig, nil)
	send(t, j.at("4317"))
	harness.Eventually(t, func() error {
		body, err := get(t, "http://"+j.at("16686")+"/api/services")
		if err == nil && !strings.Contains(body, `"cniscope"`) {
			err = fmt.Errorf("services: %s", body)
		}
		if err == nil && strings.Contains(body, "jaeger") {
			t.Fatalf("Jaeger's own traces are among them: %s", body)
		}
		return err
	})
	for _, address := range listeners(t, j.pid) {
		if !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("it listens on %s", address)
		}
	}
}

func TestCollector(t *testing.T) {
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
	send(t, c.at("4317"))

	var kept map[string]bool
	harness.Eventually(t, func() error {
		all, err := backend.FindTraces(t.Context(), rig.Query{Service: "cniscope", From: time.Unix(0, 0), To: time.Now().Add(time.Hour)})
		if err != nil {
			return err
		}
		kept = pods(all)
		if !kept["slow-0"] || !kept["broken-0"] {
			return fmt.Errorf("the backend has the traces of %v", kept)
		}
		return nil
	})
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

// collector is a Jaeger binary with a Collector configuration. Free ports replace the configured ones.
type collector struct {
	ports map[string]string
	pid   int
}

func (c *collector) at(port string) string { return c.ports[port] }

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
	dir := t.TempDir()
	moved, log := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "log")
	harness.Check(t, os.WriteFile(moved, []byte(text), 0o600))
	out := harness.Must(os.Create(log))(t)
	defer out.Close()
	cmd := exec.Command(binary, "--config", moved)
	cmd.Stdout, cmd.Stderr = out, out
	harness.Check(t, tied.Start(cmd))
	c.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("with %s it said:\n%s", config, said)
		}
	})
	harness.Eventually(t, func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", c.at("4317"))
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return c
}

func send(t *testing.T, address string) {
	t.Helper()
	program := harness.Must(scope.Build(t.Context(), t.TempDir()))(t)
	if out, err := exec.CommandContext(t.Context(), program, "show", recording, "--otlp", address).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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

func pods(all []*tracepb.ResourceSpans) map[string]bool {
	names := map[string]bool{}
	for _, resource := range all {
		for _, kv := range resource.Resource.Attributes {
			if kv.Key == "k8s.pod.name" {
				names[kv.Value.GetStringValue()] = true
			}
		}
	}
	return names
}
