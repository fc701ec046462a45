//go:build linux

package windows

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// runsPowershell is a plugin that asks powershell.exe for the pod's adapter.
const runsPowershell = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","powershell":true}]}`

// The story that this project began with: seconds in a pod's network setup, and behind them powershell.exe.
func TestPowershellInAPodsSetup(t *testing.T) {
	n := newNode(t, runsPowershell)
	endpoint := n.backend()
	n.containerd(endpoint)
	log := n.cniscope(endpoint, "")
	n.writes(log, "going on without event tracing")
	n.pods("db-6cqff")
	var all []span
	harness.Eventually(t, func() error {
		all = n.spans.list()
		for _, s := range all {
			if s.Name == "powershell" && !strings.Contains(strings.Join(above(s, all), " "), "missing") {
				return nil
			}
		}
		return errors.New("no powershell, or not all above it")
	})
	for _, s := range all {
		if s.Name != "powershell" {
			continue
		}
		if got := fmt.Sprint(above(s, all)); !strings.Contains(got, "[antrea ADD ADD eth0") || !strings.HasSuffix(got, "runtime.v1.RuntimeService/RunPodSandbox]") {
			t.Errorf("powershell is below %s", got)
		}
		for key, want := range map[string]string{"cniscope.slow": "true", "cniscope.pid": ""} {
			if got := s.about[key]; got == "" || want != "" && got != want {
				t.Errorf("%s of powershell is %q", key, got)
			}
		}
		for key, want := range map[string]string{
			"cniscope.source": "snapshots", "k8s.pod.name": "db-6cqff", "k8s.namespace.name": "default", "k8s.pod.uid": "uid-of-db-6cqff",
			"host.name": "", "cniscope.source.resolution_ms": "",
		} {
			if got := s.from[key]; got == "" || want != "" && got != want {
				t.Errorf("%s is %q", key, got)
			}
		}
	}
	text, err := os.ReadFile(log)
	harness.Check(t, err)
	if !strings.Contains(string(text), "powershell") {
		t.Error("no verdict names powershell")
	}
}
