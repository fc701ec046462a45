package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func stepOf(kind event.StepKind, name string, from, to int64) model.Step {
	s := model.Step{End: to * ms, Step: event.Step{
		Process: event.Process(name), Parent: "server", Started: from * ms, Kind: kind, Name: name,
	}}
	if kind == event.StepRuntime {
		s.Name, s.Verb = "runc", name
	}
	return s
}

func below(of string, s model.Step) model.Step {
	s.Parent = event.Process(of)
	return s
}

func TestWhatAStartWasLostTo(t *testing.T) {
	shim, create := stepOf(event.StepShim, "shim-v2", 110, 150), stepOf(event.StepRuntime, "create", 170, 220)
	start := stepOf(event.StepRuntime, "start", 230, 240)
	ordinary := []model.Step{shim, create, start}
	userNamespace, wrapper := stepOf(event.StepCommand, "exe", 155, 157), stepOf(event.StepCommand, "fsck", 160, 3160)
	userNamespace.Signal = "SIGKILL"
	systemd := stepOf(event.StepRuntime, "create", 170, 3220)
	systemd.Systemd = true
	busy := stepOf(event.StepRuntime, "create", 170, 3220)
	busy.Used.CPU = 2000 * ms
	starved := stepOf(event.StepRuntime, "create", 170, 3220)
	starved.Used.RunDelay = 2000 * ms
	both := stepOf(event.StepRuntime, "create", 170, 3220)
	both.Used.CPU, both.Used.RunDelay = 1200*ms, 1300*ms
	hook := below("create", stepOf(event.StepHook, "nvidia", 180, 3180))
	failing := hook
	failing.Code = 1
	broken := create
	broken.Code = 1
	nri := func(late int64, plugins ...event.Actor) *event.Sandbox {
		return &event.Sandbox{Late: late * ms, Plugins: plugins}
	}
	dranet := event.Actor{PID: 7, Name: "dranet"}
	unasked := nri(1200, dranet)
	unasked.Unasked = 100 * ms
	in := func(state event.AgentState) event.Actor { a := dranet; a.State = state; return a }
	for name, c := range map[string]struct {
		steps   []model.Step
		to      int64
		sandbox *event.Sandbox
		cause   Cause
		says    string
		runtime int64
	}{
		"nothing":                 {steps: ordinary, to: 250, runtime: 10 + 10 + 10},
		"a slow shim":             {[]model.Step{stepOf(event.StepShim, "shim-v2", 110, 150), stepOf(event.StepRuntime, "create", 3170, 3220)}, 3220, nil, CauseShim, "3.06s of 3.22s: shim shim-v2 started; CNI took 100ms", 10},
		"a hook":                  {[]model.Step{shim, stepOf(event.StepRuntime, "create", 170, 3220), hook}, 3220, nil, CauseHook, "3s of 3.22s: runc create ran OCI hook nvidia; CNI took 100ms", 10},
		"a failing hook":          {[]model.Step{shim, broken, failing}, 220, nil, CauseHook, "runc create exited 1: nvidia exited 1", 10},
		"a command":               {[]model.Step{shim, stepOf(event.StepRuntime, "create", 170, 3220), below("create", stepOf(event.StepCommand, "sleep", 180, 3180))}, 3220, nil, CauseOCIRuntime, "3s of 3.22s: runc create ran sleep; CNI took 100ms", 10},
		"a killed helper":         {steps: []model.Step{shim, userNamespace, create, start}, to: 250, runtime: 10 + 10 + 10},
		"a slow helper":           {[]model.Step{shim, wrapper, stepOf(event.StepRuntime, "create", 3170, 3220)}, 3220, nil, CauseShim, "3s of 3.22s: shim-v2 ran fsck; CNI took 100ms", 10},
		"systemd":                 {[]model.Step{shim, systemd}, 3220, nil, CauseOCIRuntime, "3.05s of 3.22s: runc create waited, possibly for systemd to make its cgroup; CNI took 100ms", 10},
		"a busy OCI runtime":      {[]model.Step{shim, busy}, 3220, nil, CauseOCIRuntime, "3.05s of 3.22s: runc create computed; CNI took 100ms", 10},
		"a starved OCI runtime":   {[]model.Step{shim, starved}, 3220, nil, CauseOCIRuntime, "3.05s of 3.22s: runc create waited for a CPU; CNI took 100ms", 10},
		"a busy one in a crowd":   {[]model.Step{shim, both}, 3220, nil, CauseOCIRuntime, "3.05s of 3.22s: runc create waited for a CPU; CNI took 100ms", 10},
		"the runtime":             {[]model.Step{stepOf(event.StepShim, "shim-v2", 3110, 3150), stepOf(event.StepRuntime, "create", 3170, 3220)}, 3220, nil, CauseRuntime, "3.01s of 3.22s: the runtime ran no program after the network was set up and before shim-v2, when it prepares the sandbox's container; CNI took 100ms", 3010},
		"an NRI plugin":           {ordinary, 1440, nri(1200, in(event.NRIAnswered), event.Actor{PID: 8, Name: "other"}), CauseNRI, "1.2s of 1.44s: NRI plugin dranet (pid 7) ran RunPodSandbox; CNI took 100ms", 20},
		"one of two":              {ordinary, 1440, nri(1200, dranet, event.Actor{PID: 8, Name: "other"}), CauseNRI, "1.2s of 1.44s: the runtime waited for at least one of the NRI plugins dranet (pid 7), other (pid 8); CNI took 100ms", 20},
		"none was called yet":     {ordinary, 1440, unasked, CauseRuntime, "1.1s of 1.44s: the runtime ran no program after runc start and before NRI dranet; CNI took 100ms", 1120},
		"one that was cut off":    {ordinary, 2240, nri(2000, in(event.NRICut)), CauseNRI, "NRI plugin dranet (pid 7) did not answer RunPodSandbox within 2s, and was disconnected; the pod lacks what it adds", 20},
		"one that exited":         {ordinary, 2240, nri(0, in(event.NRIExited)), CauseNRI, "NRI plugin dranet (pid 7) did not answer RunPodSandbox within 2s, and exited; the pod lacks what it adds", 20},
		"a quick NRI plugin":      {ordinary, 250, nri(0, in(event.NRIAnswered)), "", "", 20},
		"a late report, no steps": {nil, 1440, nri(1200), CauseRuntime, "1.2s of 1.44s: the runtime waited before NRI reported the sandbox; CNI took 100ms", 140},
	} {
		t.Run(name, func(t *testing.T) {
			s := model.Start{Request: model.RunPodSandbox, From: 0, Network: 100 * ms, To: c.to * ms, Reported: c.to * ms, Steps: c.steps, Sandbox: c.sandbox}
			j := Options{Thresholds: Thresholds{Call: 2 * time.Second}}.Start(s)
			harness.Equal(t, int64(j.Runtime)/ms, c.runtime, "ms without a program")
			harness.Equal(t, j.Unexplained, 0, "unexplained")
			if j.Verdict == nil {
				j.Verdict = &Verdict{}
			} else {
				plain(t, j.Verdict.Remedy)
			}
			harness.Equal(t, j.Verdict.Says, c.says, "verdict")
			harness.Equal(t, j.Verdict.Cause, c.cause, "cause")
		})
	}
}

func TestWhatComesBeforeTheNetwork(t *testing.T) {
	shim, start := stepOf(event.StepShim, "shim-v2", 3500, 3540), stepOf(event.StepRuntime, "start", 3540, 3600)
	for name, c := range map[string]struct {
		asked, mounted int64
		parts, says    string
		steps          []model.Step
		remedy         string
	}{
		"unknown":              {0, 0, "", "", nil, ""},
		"since the mount":      {0, 400, "prepare network 400-3400;", "3s of 3.2s: the runtime ran no plugin after it mounted the network namespace; CNI took 99ms", nil, CauseRuntime.remedy()},
		"of known begin":       {100, 3300, "create network namespace 100-3300;prepare network 3300-3400;", "3.2s of 3.5s: the runtime mounted no network namespace after it was asked for the sandbox; CNI took 99ms", nil, prepareRemedy},
		"of known begin alone": {400, 0, "prepare network 400-3400;", "3s of 3.2s: the runtime ran no plugin after it was asked for the sandbox; CNI took 99ms", nil, prepareRemedy},
		"without a time":       {3400, 3400, "", "", nil, ""},
		"the shim comes first": {
			100, 3300, "create network namespace 100-150;prepare network 3300-3400;",
			"3s of 3.5s: runc create waited, possibly for the kernel or a disk; CNI took 99ms",
			[]model.Step{stepOf(event.StepShim, "shim-v2", 150, 250), stepOf(event.StepRuntime, "create", 260, 3260)},
			CauseOCIRuntime.remedy(),
		},
		"the shim comes at once": {
			100, 3300, "prepare network 3300-3400;",
			"3.15s of 3.5s: runc create waited, possibly for the kernel or a disk; CNI took 99ms",
			[]model.Step{stepOf(event.StepRuntime, "create", 90, 3240)},
			CauseOCIRuntime.remedy(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := model.Start{Request: model.RunPodSandbox, Asked: c.asked * ms, Mounted: c.mounted * ms, From: 3400 * ms, Network: 3499 * ms, To: 3600 * ms, Steps: append(c.steps, shim, start)}
			j := Options{Thresholds: Thresholds{Call: 2 * time.Second}}.Start(s)
			parts := ""
			for _, p := range j.Before {
				parts += fmt.Sprintf("%s %d-%d;", p.Name, p.From/ms, p.To/ms)
			}
			harness.Equal(t, parts, c.parts)
			if j.Verdict == nil {
				j.Verdict = &Verdict{}
			}
			harness.Equal(t, j.Verdict.Says, c.says, "verdict")
			harness.Equal(t, j.Verdict.Remedy, c.remedy, "remedy")
			harness.Equal(t, j.Runtime+j.Unexplained, time.Millisecond, "without a program, after the network")
		})
	}
}
