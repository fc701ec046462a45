package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func configured(process, network string) *event.Configuration {
	return &event.Configuration{Process: event.Process(process), Network: network, CNIVersion: "1.0.0"}
}

func TestTheConfigurationNamesTheNetwork(t *testing.T) {
	two := &event.Networks{Networks: []event.Network{
		{Name: "first", Plugins: []event.Plugin{{Type: "bridge"}, {Type: "portmap"}}},
		{Name: "second", Plugins: []event.Plugin{{Type: "bridge"}, {Type: "firewall"}}},
	}}
	stories{
		"where the environment leaves two": {func(s *story) {
			s.at(0, two).plugin(1, "b", "ADD", "bridge").at(2, configured("b", "second")).exit(8, "b", 1).tick(2000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network second never run: firewall: bridge ADD 1-8 (exit 1)`},
		"where no file has it": {func(s *story) {
			s.at(0, two).plugin(1, "b", "ADD", "bridge").at(2, configured("b", "mine")).exit(8, "b", 1).tick(2000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network mine: bridge ADD 1-8 (exit 1)`},
		"also if a child reads it for the plugin; a delegate's is its own": {func(s *story) {
			s.at(0, two).plugin(1, "b", "ADD", "bridge").command(2, "c", "b", "cat").at(3, configured("c", "first")).
				exit(4, "c").
				command(5, "hl", "b", "host-local", delegate).at(6, configured("hl", "other")).exit(7, "hl").exit(8, "b", 1).
				tick(2000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network first never run: portmap: bridge ADD 1-8 (exit 1) [cat 2-4, host-local ADD 5-7]`},
	}.each(t, looked, func(s *story) string { return draw(s.closed) })
}

func TestWhatIsSeenOfACallIsSaid(t *testing.T) {
	s := tell(t).plugin(0, "a", "ADD", "bridge").exit(1, "a").plugin(2, "b", "ADD", "bridge", container("c2")).
		at(3, &event.Detail{On: true}).plugin(4, "c", "ADD", "bridge", container("c3")).exit(5, "b").exit(5, "c").
		at(6, &event.Detail{}).plugin(7, "d", "ADD", "bridge", container("c4")).exit(8, "d").tick(3000)
	for i, want := range []bool{false, true, true, false} {
		harness.Equal(t, s.closed[i].Calls[0].Seen, want, "operation", i, "is seen")
	}
}

func TestTheMainPluginIsTheSameForEveryCommand(t *testing.T) {
	known := &event.Networks{Networks: []event.Network{{
		Name:    "pods",
		Plugins: []event.Plugin{{Type: "bridge"}, {Type: "portmap"}},
	}}}
	stories{
		"ADD": {func(s *story) {
			s.plugin(10, "a", "ADD", "bridge").exit(20, "a").plugin(21, "b", "ADD", "portmap").exit(30, "b")
		}, "bridge"},
		"DEL": {func(s *story) {
			s.plugin(10, "a", "DEL", "portmap").exit(20, "a").plugin(21, "b", "DEL", "bridge").exit(30, "b")
		}, "bridge"},
		"a DEL that ended early": {func(s *story) {
			s.at(0, known).plugin(10, "a", "DEL", "portmap").exit(20, "a", 1)
		}, "bridge"},
		"a DEL that ended early, of an unknown network": {func(s *story) {
			s.plugin(10, "a", "DEL", "portmap").
				exit(20, "a", 1)
		}, "portmap"},
		"what an agent runs meanwhile counts for nothing": {func(s *story) {
			s.plugin(10, "a", "DEL", "multus-shim").plugin(12, "b", "DEL", "bridge", by("agent")).exit(20, "b").exit(25, "a")
		}, "multus-shim"},
	}.each(t, tell, func(s *story) string { return s.end().closed[0].Calls[0].Main() })
}

func stdin(is string) func(*event.Exec) { return func(e *event.Exec) { e.Stdin = is } }

// A run's process stays that run, whatever it execs and reads: a wrapper may pass the real plugin another
// configuration. Its forks may be delegated plugins.
func TestWrappers(t *testing.T) {
	stories{
		"with nothing to read, or what is unknown": {func(s *story) {
			s.plugin(0, "b", "ADD", "wrapped").image(2, "b", "cd", "real", delegate, stdin(event.NoStdin)).exit(6, "b").
				plugin(10, "p", "ADD", "wrapper2").image(12, "p", "cd", "real2", delegate, stdin("")).exit(16, "p").tick(2000)
		}, `setup c1 0-16: settled
  ADD eth0 0-16: wrapped ADD 0-6 [real 2-6], wrapper2 ADD 10-16 [real2 12-16]`},
		"twice, with another one each time": {func(s *story) {
			s.plugin(0, "b", "ADD", "outer").image(1, "b", "cd", "inner", delegate, stdin("one")).
				image(2, "b", "cd", "real", delegate, stdin("two")).
				exit(6, "b", 1).tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: outer ADD 0-6 (exit 1) [inner 1-2 (replaced), real 2-6 (exit 1)]`},
		"a delegate that is itself a wrapper": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").command(1, "w", "b", "ipam-wrapper", delegate).
				image(2, "w", "b", "host-local", delegate, stdin("heredoc")).command(3, "x", "w", "flock").exit(4, "x").
				exit(5, "w").exit(6, "b").tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: bridge ADD 0-6 [ipam-wrapper ADD 1-5 [host-local 2-5 [flock 3-4]]]`},
		"a wrapper that an agent runs": {func(s *story) {
			s.plugin(0, "s", "ADD", "shim").plugin(1, "b", "ADD", "wrapped", by("agent")).
				image(2, "b", "agent", "real", delegate, stdin("heredoc")).exit(5, "b").exit(6, "s").tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: shim ADD 0-6 [wrapped ADD 1-5 [real 2-5]]`},
	}.each(t, tell, func(s *story) string {
		s.over()
		return draw(s.closed)
	})
}

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
