//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const ordinaryPods = "CNISCOPE_TEST_PODS"

// iptables -C exits 1 in every ADD, and no span has the status Error. Span names are few.
func TestOrdinaryPodsAreOrdinary(t *testing.T) {
	pods := 60
	if text := os.Getenv(ordinaryPods); text != "" {
		pods = harness.Must(strconv.Atoi(text))(t)
	}
	const first = 10 // pods until all names are known
	file := filepath.Join(t.TempDir(), "otlp.jsonl")
	s := set(t, false, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Portmap(), rig.Firewall()}}},
	}, scope.Options{TOML: fmt.Sprintf("[limits]\n[export.file]\npath = %q\n", file)})

	begin := time.Now()
	s.inParallel(4, pods, func(i int) error {
		return s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{
			Namespace: "shop", Name: fmt.Sprintf("web-%d", i),
			HostPorts: []rig.HostPort{{Host: int32(20000 + i), Container: 80}},
		})
	})
	t.Logf("%d pods in %s", pods, time.Since(begin).Round(time.Second))
	harness.Check(t, s.scope.Stop())

	names := map[string]int{} // first pod by span name
	inside := map[string]bool{}
	calls := map[string]int{}
	spans, failed, partial := 0, 0, 0
	verdicts := map[string]int{}
	s.eachSpan(file, func(x ptrace.Span, text func(string) string) {
		spans++
		pod := harness.Must(strconv.Atoi(strings.TrimPrefix(text("k8s.pod.name"), "web-")))(t)
		switch text("cniscope.kind") {
		case "operation", "call", "run", "delegate", "command":
			if lowest, known := names[x.Name()]; !known || pod < lowest {
				names[x.Name()] = pod
			}
		default: // inside of a plugin; these names are cniscope's
			inside[x.Name()] = true
		}
		if x.Status().Code() == ptrace.StatusCodeError {
			failed++
			t.Errorf("%s of pod %d has status Error: %s", x.Name(), pod, x.Status().Message())
		}
		if reason := text("cniscope.partial_reason"); reason != "" {
			partial++
			t.Errorf("%s of pod %d is partial: %s", x.Name(), pod, reason)
		}
		if text("cniscope.kind") == "call" {
			calls[fmt.Sprintf("web-%d %s %s", pod, x.Name(), text("cni.ifname"))]++
			verdicts[cmp.Or(text("cniscope.cause"), "none")]++
			s.judgedRight(x)
		}
	})
	for name, pod := range names {
		if pod >= first {
			t.Errorf("the span name %q is new with pod %d", name, pod)
		}
	}
	if len(inside) > 40 {
		t.Errorf("%d names of what is inside of plugins: %v", len(inside), slices.Sorted(maps.Keys(inside)))
	}
	for i := range pods {
		for _, call := range []string{"CNI ADD lo", "CNI ADD eth0", "CNI DEL lo", "CNI DEL eth0"} {
			if n := calls[fmt.Sprintf("web-%d %s", i, call)]; n == 0 || strings.HasPrefix(call, "CNI ADD") && n > 1 {
				t.Errorf("pod web-%d has %d spans %s", i, n, call)
			}
		}
	}
	lost := s.losses()
	if lost > 0 {
		t.Error("cniscope lost events")
	}
	t.Logf("verdicts by their cause: %v", verdicts)
	t.Logf("%d spans with %d names, %d of them of what is inside of plugins; %d with status Error, %d partial, %d losses", spans, len(names)+len(inside), len(inside), failed, partial, lost)
}

// judgedRight checks that a fast call has no verdict, and a slow one only a verdict that matches its parts.
func (s *stage) judgedRight(x ptrace.Span) {
	s.Helper()
	number := func(key string) float64 { v, _ := x.Attributes().Get(key); return v.Double() }
	cause, _ := x.Attributes().Get("cniscope.cause")
	verdict, _ := x.Attributes().Get("cniscope.verdict")
	took := float64(x.EndTimestamp()-x.StartTimestamp()) / 1e6
	if limit := number("cniscope.slow_threshold_ms"); limit == 0 || took <= limit {
		if cause.Str() != "" {
			s.Errorf("%s took %.0f ms, and it is said: %s", x.Name(), took, verdict.Str())
		}
		return
	}
	parts := map[string]string{
		"file_lock": "locks", "kernel_lock": "kernel_locks", "slow_command": "commands", "many_commands": "commands",
		"network_configuration": "network", "system_call": "system_calls", "runtime": "between_runs", "plugin": "plugins", "sleep": "sleep",
	}
	part := number("cniscope.time." + parts[cause.Str()] + "_ms")
	switch {
	case cause.Str() == "cpu_starved", cause.Str() == "unexplained":
	case parts[cause.Str()] == "" || part < took/10:
		s.Errorf("%s took %.0f ms, and it is said: %s (%s)", x.Name(), took, verdict.Str(), cause.Str())
	}
	s.Logf("%s took %.0f ms: %s", x.Name(), took, verdict.Str())
}

func (s *stage) eachSpan(file string, take func(x ptrace.Span, text func(key string) string)) {
	s.Helper()
	data := harness.Must(scope.ReadSpans(file))(s.T)
	for line := range bytes.Lines(data) {
		traces := harness.Must((&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line))(s.T)
		for _, rs := range traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, x := range ss.Spans().All() {
					take(x, func(key string) string {
						v, found := x.Attributes().Get(key)
						if !found {
							v, _ = rs.Resource().Attributes().Get(key)
						}
						return v.Str()
					})
				}
			}
		}
	}
}
