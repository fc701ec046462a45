package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// If a runtime removes a network at once, or before NRI reported the sandbox, the sandbox failed, although every plugin
// succeeded.
func TestANetworkThatIsUndone(t *testing.T) {
	good := func(s *story) *story { return s.plugin(100, "a", "ADD", "bridge").exit(200, "a") }
	stories{
		"at once":      {func(s *story) { good(s).plugin(210, "b", "DEL", "bridge").exit(220, "b") }, "at 210, 0 steps"},
		"just in time": {func(s *story) { good(s).plugin(249, "b", "DEL", "bridge").exit(260, "b") }, "at 249, 0 steps"},
		"after 50 ms":  {func(s *story) { good(s).plugin(250, "b", "DEL", "bridge").exit(260, "b") }, ""},
		"later":        {func(s *story) { good(s).plugin(400, "b", "DEL", "bridge").exit(420, "b") }, ""},
		"later, the first sandbox that its runtime would have reported": {func(s *story) {
			s.at(0, &event.Registered{PID: 812}).plugin(100, "a", "ADD", "bridge", calledBy(812)).exit(200, "a").
				plugin(400, "b", "DEL", "bridge").exit(420, "b")
		}, "at 400, 0 steps"},
		"later, and its OCI runtime failed": {func(s *story) {
			good(s).step(300, event.StepRuntime, "create", 1).plugin(400, "b", "DEL", "bridge").exit(420, "b")
		}, "at 400, 1 steps"},
		"later, and its OCI runtime failed before it started": {func(s *story) {
			good(s).step(300, event.StepRuntime, "create", 1).step(310, event.StepRuntime, "start", 0).plugin(400, "b", "DEL", "bridge").exit(420, "b")
		}, ""},
		"not yet, and its OCI runtime failed": {func(s *story) {
			good(s).step(300, event.StepRuntime, "create", 1).step(310, event.StepRuntime, "delete", 0)
		}, "at 0, 2 steps"},
		"later, of another runtime": {func(s *story) {
			s.at(0, &event.Registered{PID: 812}).plugin(100, "a", "ADD", "bridge", calledBy(813)).exit(200, "a").
				plugin(400, "b", "DEL", "bridge").exit(420, "b")
		}, ""},
		"later, and it ran": {func(s *story) {
			s.at(0, &event.Registered{PID: 812}).plugin(100, "a", "ADD", "bridge", calledBy(812)).exit(200, "a").
				at(390, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).plugin(400, "b", "DEL", "bridge").exit(420, "b")
		}, ""},
		"later, while NRI is away": {func(s *story) {
			s.at(0, &event.Registered{PID: 812}).plugin(100, "a", "ADD", "bridge", calledBy(812)).exit(200, "a").
				at(300, &event.Degraded{Feature: "nri"}).plugin(400, "b", "DEL", "bridge").exit(420, "b")
		}, ""},
		"after a failure": {func(s *story) {
			s.plugin(100, "a", "ADD", "bridge").exit(200, "a", 1).plugin(210, "b", "DEL", "bridge").exit(220, "b")
		}, ""},
		"while a plugin runs": {func(s *story) {
			s.plugin(100, "a", "ADD", "bridge").plugin(210, "b", "DEL", "bridge").exit(220, "b")
		}, ""},
		"after an end that was not seen": {func(s *story) {
			s.plugin(100, "a", "ADD", "bridge").at(200, &event.Exit{Process: "a", Unseen: true}).plugin(210, "b", "DEL", "bridge").exit(220, "b")
		}, ""},
		"of a sandbox that ran": {func(s *story) {
			good(s).at(205, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).plugin(210, "b", "DEL", "bridge").exit(220, "b")
		}, ""},
	}.each(t, tell, func(s *story) (got string) {
		for _, op := range s.tick(60_000).closed {
			if call := op.Calls[0]; op.Kind == model.Setup && (call.Undone > 0 || call.Broken != nil) {
				got += fmt.Sprintf("at %d, %d steps", call.Undone/ms, len(call.Broken))
			}
		}
		return got
	})
}

// A runtime that runs loopback beside the network, and cannot start it, has no sandbox although the network's plugins
// succeeded.
func TestLoopbackThatCannotStart(t *testing.T) {
	absent := &event.Programs{
		Looked: []string{"loopback"}, Faults: []event.Program{{Name: "loopback", Fault: event.FaultAbsent}}, Loopback: true,
	}
	unneeded := &event.Programs{Looked: absent.Looked, Faults: absent.Faults}
	begin := func(s *story, p *event.Programs) *story {
		return s.at(0, &event.Registered{PID: 812}).at(0, p).plugin(100, "a", "ADD", "bridge", calledBy(812))
	}
	stories{
		"settled": {func(s *story) { begin(s, absent).exit(200, "a").tick(60_000) }, "loopback"},
		"removed": {func(s *story) {
			begin(s, absent).exit(200, "a").plugin(400, "b", "DEL", "bridge").exit(420, "b").tick(60_000)
		}, "loopback"},
		"control: it can start": {func(s *story) {
			begin(s, &event.Programs{Looked: []string{"loopback"}}).exit(200, "a").tick(60_000)
		}, ""},
		"control: only a file names it, settled": {func(s *story) { begin(s, unneeded).exit(200, "a").tick(60_000) }, ""},
		"control: only a file names it, removed": {func(s *story) {
			begin(s, unneeded).exit(200, "a").plugin(400, "b", "DEL", "bridge").exit(420, "b").tick(60_000)
		}, ""},
		"control: it ran": {func(s *story) {
			begin(s, absent).plugin(110, "l", "ADD", "loopback", on("lo")).exit(120, "l").exit(200, "a").tick(60_000)
		}, ""},
		"control: the sandbox runs": {func(s *story) {
			begin(s, absent).exit(200, "a").at(300, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(60_000)
		}, ""},
		"control: the plugin failed": {func(s *story) { begin(s, absent).exit(200, "a", 1).tick(60_000) }, ""},
		"control: another runtime": {func(s *story) {
			s.at(0, &event.Registered{PID: 812}).at(0, absent).plugin(100, "a", "ADD", "bridge", calledBy(813)).exit(200, "a").tick(60_000)
		}, ""},
		"control: its OCI runtime failed": {func(s *story) {
			begin(s, absent).exit(200, "a").step(300, event.StepRuntime, "create", 1).tick(60_000)
		}, ""},
		"control: the observation ends": {func(s *story) { begin(s, absent).exit(200, "a").tick(210).end() }, ""},
	}.each(t, tell, func(s *story) (got string) {
		for _, op := range s.closed {
			for _, call := range op.Calls {
				got += strings.Join(call.NeverRun, " ")
			}
		}
		return got
	})
}

func calledBy(pid uint32) func(*event.Exec) { return func(e *event.Exec) { e.ParentPID = pid } }

// A sandbox keeps its addresses when it stops, and is remembered for a minute after its removal: for its last DEL.
func TestAStoppedSandboxKeepsItsAddresses(t *testing.T) {
	const address = "10.22.0.5"
	s := tell(t).at(0, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1", IPs: []string{address}}).
		at(10, &event.Sandbox{Phase: event.SandboxStopped, ID: "c1"}).at(20, &event.Sandbox{Phase: event.SandboxRemoved, ID: "c1"}).
		plugin(30, "b", "DEL", "bridge").exit(40, "b").tick(60_000)
	harness.EqualSlices(t, s.closed[0].Sandbox.IPs, []string{address})
	harness.Equal(t, held(s.line.pods, "sandboxes", "known"), 1, "sandboxes known")
	s.tick(61_000)
	harness.Equal(t, held(s.line.pods, "sandboxes", "known"), 0, "sandboxes known a minute after the removal")
}
