//go:build linux

package windows

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const runsPowershell = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","powershell":true}]}`

func (n *node) jaeger() (endpoint string, all func() []span) {
	n.t.Helper()
	j, err := rig.StartJaeger(n.t.Context(), rig.JaegerOptions{})
	if errors.Is(err, rig.ErrNoTools) {
		n.t.Skip(err)
	}
	harness.Check(n.t, err)
	n.t.Cleanup(func() { _ = j.Close() })
	return j.OTLP(), func() (all []span) {
		for _, service := range []string{"containerd", "cniscope"} {
			traces := harness.Must(j.FindTraces(n.t.Context(), rig.Query{Service: service}))(n.t)
			all = append(all, flat(traces)...)
		}
		slices.SortFunc(all, func(a, b span) int { return strings.Compare(string(a.SpanId), string(b.SpanId)) })
		return slices.CompactFunc(all, func(a, b span) bool { return string(a.SpanId) == string(b.SpanId) })
	}
}

func below(t *testing.T, spans func() []span, pod, name string) (found, all []span) {
	t.Helper()
	harness.Eventually(t, func() error {
		all = spans()
		found = slices.DeleteFunc(slices.Clone(all), func(s span) bool { return s.Name != name || s.from["k8s.pod.name"] != pod })
		if len(found) == 0 {
			return fmt.Errorf("no %s of %s, but %v", name, pod, names(all, pod))
		}
		for _, s := range found {
			if up := strings.Join(above(s, all), " < "); up == "" || strings.Contains(up, "missing") {
				return errors.New(name + " is below " + up)
			}
		}
		return nil
	})
	return found, all
}

func names(all []span, pod string) (list []string) {
	for _, s := range all {
		if s.from["k8s.pod.name"] == pod {
			list = append(list, s.Name)
		}
	}
	return list
}

func has(t *testing.T, attributes, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got, is := attributes[key]; !is || value != "" && got != value {
			t.Errorf("%s is %q, want %q", key, got, value)
		}
	}
}

func TestPowershellInAPodsSetup(t *testing.T) {
	n := newNode(t, runsPowershell)
	endpoint, spans := n.jaeger()
	n.containerd(endpoint)
	log := n.cniscope(endpoint, "")
	n.writes(log, `"feature unavailable" feature="event tracing"`)
	n.pods("db-6cqff")
	found, all := below(t, spans, "db-6cqff", "powershell")
	s := found[0]
	if up := strings.Join(above(s, all), " < "); !strings.HasPrefix(up, "antrea ADD < CNI ADD < ") {
		t.Errorf("powershell is below %s", up)
	}
	has(t, s.about, map[string]string{"cniscope.slow": "true", "process.pid": "", "process.exit.code": "0"})
	has(t, s.from, map[string]string{
		"cniscope.source": "snapshots", "cniscope.source.resolution_ms": "", "host.name": "",
		"k8s.pod.name": "db-6cqff", "k8s.namespace.name": "default", "k8s.pod.uid": "uid-of-db-6cqff",
	})
	calls, _ := below(t, spans, "db-6cqff", "CNI ADD")
	harness.Says(t, calls[0].about["cniscope.verdict"], "plugin antrea ran powershell")
	if up := above(calls[0], all); !slices.Contains(up, "runtime.v1.RuntimeService/RunPodSandbox") {
		t.Errorf("the call is below %v", up)
	}
	// Without a shim under wine, the sandbox fails after its ADD. Containerd begins a trace for the teardown.
	dels, all := below(t, spans, "db-6cqff", "CNI DEL")
	if up := above(dels[0], all); up[len(up)-1] != "cni.Remove" {
		t.Errorf("the DEL is below %v", up)
	}
	text := harness.Must(os.ReadFile(log))(t)
	harness.Says(t, string(text), "plugin antrea ran powershell")
}
