package timeline

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func (s *story) step(at int64, kind event.StepKind, verb string, code uint32) *story {
	return s.at(at, &event.Step{
		SandboxID: "c1", Process: event.Process(fmt.Sprint(at)), Kind: kind, Verb: verb, Started: (at - 10) * ms, Code: code,
	})
}

func starts(s *story) string {
	var all []string
	for _, st := range s.line.Pods().Started() {
		request := strings.TrimPrefix(st.Request, model.RunPodSandbox)
		says := fmt.Sprintf("%s%s %d-%d-%d", request, st.ContainerID, st.From/ms, st.Network/ms, st.To/ms)
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
		"a stop and a removal for which a plugin of NRI's is late": {func(s *story) {
			for i, phase := range []event.Phase{event.SandboxRunning, event.SandboxStopped, event.SandboxRemoved} {
				for _, state := range []event.AgentState{"", event.AgentStopped} {
					s.at(int64(10*i), &event.Sandbox{Phase: phase, ID: " c2", Late: 7 * ms, Plugins: []event.Actor{{State: state}}})
				}
			}
		}, "StopPodSandbox c2 3-3-10 reported 10 late 7000000; RemovePodSandbox c2 13-13-20 reported 20 late 7000000"},
		"of a sandbox without a call": {func(s *story) { s.step(80, event.StepShim, "", 0).tick(400_000) }, ""},
	}.each(t, tell, starts)
}

func TestWhenTheRuntimeBeganAStart(t *testing.T) {
	begins := func(s *story) string {
		says := ""
		for _, st := range s.line.Pods().Started() {
			says += fmt.Sprintf("asked %d mounted %d from %d;", st.Asked/ms, st.Mounted/ms, st.From/ms)
		}
		return says
	}
	network := func(s *story) *story {
		return s.plugin(1000, "p", "ADD", "bridge").exit(1050, "p").step(1080, event.StepShim, "", 0).step(1140, event.StepRuntime, "start", 0)
	}
	report := func(s *story, mounted int64) *story {
		return s.at(1150, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1", Mounted: mounted * ms}).tick(1160).tick(1170)
	}
	set := func(s *story, at, ahead int64) *story { return s.at(at, &event.Clock{Wall: (at + ahead) * ms}) }
	older := func(s *story, mounted int64) {
		s.plugin(301_000, "p", "ADD", "bridge").exit(301_050, "p").step(301_140, event.StepRuntime, "start", 0).
			at(301_150, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1", Mounted: mounted * ms}).tick(301_160).tick(301_170)
	}
	stories{
		"the namespace was mounted":                {func(s *story) { report(network(s), 900) }, "asked 0 mounted 900 from 1000;"},
		"mounted by a clock that was set":          {func(s *story) { report(network(s), 1001) }, "asked 0 mounted 0 from 1000;"},
		"one that is older than a runtime's start": {func(s *story) { older(s, 1000) }, "asked 0 mounted 0 from 301000;"},
		"one as old as a runtime's start":          {func(s *story) { older(s, 1001) }, "asked 0 mounted 1001 from 301000;"},
		"by another clock":                         {func(s *story) { report(network(set(s, 1, 7000)), 7900) }, "asked 0 mounted 900 from 1000;"},
		"the clock is set after the network":       {func(s *story) { report(set(network(set(s, 1, 7000)), 1145, 37_000), 7900) }, "asked 0 mounted 0 from 1000;"},
		"it is set before the network":             {func(s *story) { report(network(set(set(s, 1, 7000), 950, 7010)), 7900) }, "asked 0 mounted 0 from 1000;"},
		"it is set before the mount":               {func(s *story) { report(network(set(set(s, 1, 7000), 850, 7010)), 7910) }, "asked 0 mounted 900 from 1000;"},
		"the clock drifts":                         {func(s *story) { report(network(set(set(s, 1, 7000), 950, 7009)), 7909) }, "asked 0 mounted 900 from 1000;"},
		"a program was lost": {func(s *story) {
			report(network(s.at(950, &event.Lost{Source: "probe", Reason: "full", Count: 1})), 900)
		}, "asked 0 mounted 0 from 1000;"},
		"a plugin was lost": {func(s *story) {
			report(network(s.at(950, &event.Lost{Source: "probe", Reason: "full", Count: 1, Process: "o"})), 900)
		}, "asked 0 mounted 0 from 1000;"},
		"a call of NRI's was lost": {func(s *story) {
			report(network(s.at(950, &event.Lost{Source: "nri", Reason: "full", Count: 1})), 900)
		}, "asked 0 mounted 900 from 1000;"},
		"a plugin's event was lost": {func(s *story) {
			s.plugin(1000, "p", "ADD", "bridge").at(1010, &event.Lost{Source: "probe", Reason: "full", Count: 1, Process: "p"}).exit(1050, "p")
			report(s.step(1140, event.StepRuntime, "start", 0), 900)
		}, "asked 0 mounted 0 from 1000;"},
		"a plugin ran before the observation": {func(s *story) {
			s.plugin(1000, "p", "ADD", "tuning", func(e *event.Exec) { e.InFlight = true }).exit(1050, "p").step(1140, event.StepRuntime, "start", 0)
			report(s, 900)
		}, "asked 0 mounted 0 from 1000;"},
		"before the observation": {func(s *story) { report(network(set(s, 950, 7000)), 7900) }, "asked 0 mounted 0 from 1000;"},
	}.each(t, tell, begins)
	stories{
		"the runtime's narrowest span comes first, its widest last": {func(s *story) {
			report(network(s), 900).span(5000, "cni.setup_pod_network", 950, 1060).tick(5001).span(5002, "cri.sandbox.run", 700, 1160).
				span(5002, "runtime.v1.RuntimeService/RunPodSandbox", 699, 1161).tick(5010)
		}, "asked 699 mounted 900 from 1000;"},
		"the widest alone": {func(s *story) {
			report(network(s), 0).span(5000, "runtime.v1.RuntimeService/RunPodSandbox", 699, 1161).tick(5010)
		}, "asked 699 mounted 0 from 1000;"},
		"a tick of the kernel's clock early": {func(s *story) {
			report(network(s), 698).span(5000, "cri.sandbox.run", 700, 1161).tick(5010)
		}, "asked 700 mounted 700 from 1000;"},
		"a damaged recording": {func(s *story) {
			report(network(set(s, math.MinInt64/ms, 7000)), 7900).span(5000, "cri.sandbox.run", math.MinInt64/ms+1, 1161).tick(8170).tick(8171)
		}, "asked 0 mounted 900 from 1000;"},
		"none, without a wait, if it samples no request": {func(s *story) {
			network(s).at(1150, &event.Sandbox{
				Phase: event.SandboxRunning, ID: "c1", Mounted: 900 * ms, Trace: event.TraceContext{Parent: unsampledContext},
			}).tick(1160).tick(1170)
		}, "asked 0 mounted 900 from 1000;"},
		"not if a program was lost": {func(s *story) {
			report(network(s.at(950, &event.Lost{Source: "probe", Reason: "full", Count: 1})), 900).span(5000, "cri.sandbox.run", 700, 1161).tick(5010)
		}, "asked 0 mounted 0 from 1000;"},
		"another request":     {func(s *story) { report(network(s), 900).span(5000, "StopPodSandbox", 699, 1161).tick(8149) }, ""},
		"no span in its time": {func(s *story) { report(network(s), 900).tick(8170).tick(8171).tick(8172) }, "asked 0 mounted 900 from 1000;"},
	}.each(t, relayed, begins)
}
