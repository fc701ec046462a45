package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func (s *story) step(at int64, kind event.StepKind, verb string, code uint32) *story {
	return s.at(at, &event.Step{
		SandboxID: "c1", Process: event.Process(fmt.Sprint(at)), Kind: kind, Verb: verb, Started: (at - 10) * ms, Code: code,
	})
}

func starts(s *story) string {
	var all []string
	for _, st := range s.line.Pods().Started() {
		says := fmt.Sprintf("%s %d-%d-%d", st.ContainerID, st.From/ms, st.Network/ms, st.To/ms)
		for _, step := range st.Steps {
			says += fmt.Sprintf(" %s%s", step.Kind, step.Verb)
		}
		if st.Reported != 0 {
			says += fmt.Sprintf(" reported %d late %d", st.Reported/ms, st.Sandbox.Late)
		}
		all = append(all, says)
	}
	return strings.Join(all, "; ")
}

func TestTheStartOfASandbox(t *testing.T) {
	network := func(s *story) *story {
		return s.plugin(0, "p", "ADD", "bridge").exit(50, "p")
	}
	running := &event.Sandbox{Phase: event.SandboxRunning, ID: "c1", Pod: event.Pod{Name: "pod"}, Late: 7}
	stories{
		"ordinary": {func(s *story) {
			network(s).step(80, event.StepShim, "", 0).step(120, event.StepRuntime, "create", 0).step(140, event.StepRuntime, "start", 0).
				at(150, running).at(152, &event.Sandbox{Phase: event.SandboxStopped, ID: "c1"}).tick(160).tick(170)
		}, "c1 0-50-150 shim oci_runtimecreate oci_runtimestart reported 150 late 7"},
		"NRI reports before runc start (containerd 1.7)": {func(s *story) {
			network(s).step(80, event.StepShim, "", 0).step(120, event.StepRuntime, "create", 0).at(130, running).tick(140).
				step(160, event.StepRuntime, "start", 0).tick(170)
		}, "c1 0-50-160 shim oci_runtimecreate oci_runtimestart reported 130 late 7"},
		"without steps": {func(s *story) {
			network(s).at(150, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(160).tick(170)
		}, ""},
		"without NRI": {func(s *story) {
			network(s).step(80, event.StepShim, "", 0).step(140, event.StepRuntime, "start", 0).tick(12_000).tick(14_000)
		}, "c1 0-50-140 shim oci_runtimestart"},
		"a failed one": {func(s *story) {
			network(s).step(80, event.StepShim, "", 0).step(120, event.StepRuntime, "create", 1).
				plugin(200, "d", "DEL", "bridge").tick(210).tick(220)
		}, "c1 0-50-120 shim oci_runtimecreate"},
		"without steps, of which NRI was told late": {func(s *story) { network(s).at(150, running).tick(160).tick(170) }, "c1 0-50-150 reported 150 late 7"},
		"without NRI, before it rested a second": {func(s *story) {
			network(s).step(140, event.StepRuntime, "start", 0).tick(1100).tick(1139)
		}, ""},
		"without NRI, a second after its last program": {func(s *story) {
			network(s).step(140, event.StepRuntime, "start", 0).step(1000, event.StepHook, "", 0).tick(1100).tick(1140)
		}, "c1 0-50-140 oci_runtimestart hook"},
		"within five minutes it may still start": {func(s *story) {
			network(s).step(80, event.StepShim, "", 0).tick(2000).tick(300_080)
		}, ""},
		"after five minutes it does not start": {func(s *story) {
			network(s).step(80, event.StepShim, "", 0).tick(2000).tick(300_081)
		}, "c1 0-50-80 shim"},
		"of its programs 64 are known, and the last one ends it": {func(s *story) {
			network(s)
			for i := range int64(70) {
				s.step(100+i, event.StepCommand, "", 0)
			}
			s.step(200, event.StepRuntime, "start", 0).tick(1100).tick(1200)
		}, "c1 0-50-200" + strings.Repeat(" command", 64)},
		"of a sandbox without a call": {func(s *story) { s.step(80, event.StepShim, "", 0).tick(400_000) }, ""},
	}.each(t, tell, starts)
}
