//go:build linux

package windows

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// onlyAgent is a plugin that has an agent do everything.
const onlyAgent = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","agent":"\\\\.\\pipe\\antrea-test"}]}`

// Nobody sees who is called over a named pipe. What the agent runs with the pod's adapter in its command line is the
// pod's for certain, in the ADD and after it; what it runs with no such name, a candidate.
func TestAnAgentOverANamedPipe(t *testing.T) {
	n := newNode(t, onlyAgent)
	endpoint, spans := n.backend()
	n.agent("-after", "2s", "-blind")
	n.containerd(endpoint)
	// Of the runtime's sandboxes none lives under wine: what comes after an ADD is the driver's.
	n.cniscope(endpoint, "[probe]\ncallers = ['C:/containerd/driver.exe']\n")
	n.drive("db-6cqff")
	harness.Eventually(t, func() error {
		certain, candidate, after := 0, 0, 0
		behind := map[string]bool{}
		for _, s := range spans() {
			if s.Name == "work after ADD" {
				behind[string(s.SpanId)] = true
			}
		}
		for _, s := range spans() {
			if s.from["k8s.pod.name"] != "db-6cqff" {
				continue
			}
			switch {
			case s.Name == "powershell" && s.about["cniscope.attribution"] == "candidate":
				candidate++
			case s.Name == "powershell" && behind[string(s.ParentSpanId)]:
				after++
			case s.Name == "powershell":
				certain++
			}
		}
		if certain != 1 || candidate != 1 || after != 1 {
			return fmt.Errorf("%d certain, %d candidates, %d after ADD; %v", certain, candidate, after, names(spans(), "db-6cqff"))
		}
		return nil
	})
}
