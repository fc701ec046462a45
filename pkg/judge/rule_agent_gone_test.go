package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func TestRefusedAgent(t *testing.T) {
	rulings(t, map[string]ruling{
		"it tries again and again": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(20, 940), turnedDown(19, "ENOENT")), slept(from(30, 900)))),
			cause: CauseRefused, says: `^920ms of 1s: plugin p failed 19 times to connect to /run/a\.sock \(ENOENT\)$`, remedy: `^start the agent that listens at /run/a\.sock`, report: "containerd/containerd#4666",
		},
		"and fails because of it": {
			op:    add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")), wrote("no agent")), exit(1))),
			cause: CauseRefused, says: `^plugin p failed \(code 11\): "no agent"; plugin p failed 3 times to connect to /run/a\.sock \(ECONNREFUSED\)$`,
		},
		"and says so itself": {
			op: add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")),
				wrote("dial unix /run/a.sock: connect: connection refused")), exit(1))),
			cause: CauseRefused, says: `^plugin p failed \(code 11\): "dial unix /run/a.sock: connect: connection refused"; it tried 3 times$`, remedy: `^start the agent`,
		},
		"control: it says another address": {
			op: add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(1, "ECONNREFUSED")),
				wrote("dial unix /run/b.sock: connect: connection refused")), exit(1))),
			cause: CauseRefused, says: `b.sock: connect: connection refused"; plugin p failed to connect to /run/a\.sock \(ECONNREFUSED\)$`,
		},
		"and fails two seconds later, after it cleaned up": {
			op:    add(with(seen(plugin("p", 0, 2040), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")), wrote("no agent")), exit(1))),
			cause: CauseRefused,
		},
		"control: it fails later than that": {
			op:    add(with(seen(plugin("p", 0, 2041), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")), wrote("no agent")), exit(1))),
			cause: CauseFailed,
		},
		"packets that get lost are no refusal": {
			op:    add(seen(plugin("p", 0, 4000), dialled("tcp", "10.0.0.9:443", from(20, 3900), turnedDown(1, "ETIMEDOUT")))),
			cause: CauseRefused, says: `plugin p failed to connect to 10\.0\.0\.9:443 \(ETIMEDOUT\)$`, remedy: `^start the machine behind 10\.0\.0\.9, open the packet filters`,
		},
		"nor is an address without a way there": {
			op:    add(seen(plugin("p", 0, 4000), dialled("tcp", "10.0.0.9:443", from(20, 3900), turnedDown(1, "EHOSTUNREACH")))),
			cause: CauseRefused, says: `plugin p failed to connect to 10\.0\.0\.9:443 \(EHOSTUNREACH\)$`, remedy: `^add a route to 10\.0\.0\.9 `,
		},
		"control: refusals that took no time explain nothing": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(20, 21), turnedDown(1, "ENOENT")), slept(from(30, 1000)))), cause: CauseSleep,
		},
		"control: it called somebody else after that, and failed of something else": {
			op: add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 21), turnedDown(1, "ENOENT")),
				dialled("unix", "/run/b.sock", from(22, 40)), wrote("no")), exit(1))), cause: CauseFailed,
		},
		"control: nobody misses nscd": {
			op:    add(with(seen(plugin("p", 0, 50), dialled("unix", "/var/run/nscd/socket", from(20, 21), turnedDown(1, "ENOENT")), wrote("no")), exit(1))),
			cause: CauseFailed, says: `^plugin p failed \(code 11\): "no"$`,
		},
	})
}

// endedAt ends a connection's agent.
func endedAt(at int64) func(*model.Connection) {
	return func(c *model.Connection) { c.Work.Gone = at * ms }
}

// succeeded adds a successor.
func succeeded(pid uint32, at int64) func(*model.Connection) {
	return func(c *model.Connection) { c.Work.Successor, c.Work.Back = &event.Actor{PID: pid}, at*ms }
}

func oom(c *model.Connection) { c.Work.Killed = "OOM" }

// by sets a connection's agent.
func by(name string, pid uint32) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Answered, c.Agent = true, &event.Actor{Process: event.Process(rune(pid)), PID: pid, Name: name}
	}
}

func TestAgentEnded(t *testing.T) {
	rulings(t, map[string]ruling{
		"in the middle of a call, which fails": {
			op:    add(with(seen(plugin("p", 0, 900), wrote("EOF"), dialled("unix", "/run/a.sock", from(10, 800), served(nil, nil), endedAt(800))), exit(1))),
			cause: CauseEnded, says: `^plugin p failed \(code 11\): "EOF"; agentd \(pid 44\) exited 790ms after it was called$`,
			remedy: `kubectl logs --previous.*kubectl describe pod`,
		},
		"and nobody answered after that": {
			op: add(with(seen(plugin("p", 0, 900), wrote("EOF"), dialled("unix", "/run/a.sock", from(10, 400), served(nil, nil), endedAt(400)),
				dialled("unix", "/run/a.sock", from(410, 890), turnedDown(9, "ECONNREFUSED"))), exit(1))),
			cause: CauseEnded, says: `agentd \(pid 44\) exited 390ms after it was called$`,
		},
		"and was started again": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(10, 400), served(nil, nil), endedAt(400), succeeded(45, 900)),
				dialled("unix", "/run/a.sock", from(410, 900), turnedDown(9, "ECONNREFUSED")),
				dialled("unix", "/run/a.sock", from(900, 990), served(nil, nil), by("agentd", 45)))),
			cause: CauseRestarted, says: `^970ms of 1s: plugin p waited for agentd at /run/a\.sock; agentd \(pid 44\) exited 390ms after it was called; the new process \(pid 45\) answered 500ms after the exit$`,
		},
		"for want of memory": {
			op:    add(with(seen(plugin("p", 0, 900), wrote("EOF"), dialled("unix", "/run/a.sock", from(10, 400), served(nil, nil), endedAt(400), oom)), exit(1))),
			cause: CauseOOM, says: `agentd \(pid 44\) was OOM-killed 390ms after`, remedy: `resources\.limits\.memory`,
		},
		"control: it answered, and the plugin failed of something else": {
			op: add(with(seen(plugin("p", 0, 900), wrote("no"), dialled("unix", "/run/a.sock", from(10, 400), served(nil, nil), endedAt(400)),
				dialled("unix", "/run/b.sock", from(410, 800))), exit(1))),
			cause: CauseFailed,
		},
		"control: it ended, and that took no time": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(10, 20), served(nil, nil), endedAt(20)), slept(from(30, 1000)))), cause: CauseSleep,
		},
	})
}

func TestAPeerOfTheAgentEnded(t *testing.T) {
	fails := func(message string, change ...func(*model.Connection)) *model.Operation {
		return add(with(seen(plugin("p", 0, 1000), wrote(message), dialled("unix", "/run/a.sock", from(0, 990), append([]func(*model.Connection){served(nil, nil)}, change...)...)), exit(1)))
	}
	const ending = `plugin p waited for dbd, through agentd; dbd \(pid 812\) exited 290ms after the wait began`
	rulings(t, map[string]ruling{
		"and no process answers in its place": {
			op:    calling(did(waits("dbd", from(10, 300), endedAt(300)))),
			cause: CauseEnded, says: `^980ms of 1s: ` + ending + `$`, remedy: `^start dbd again and fix why it exited`,
		},
		"which the call fails of": {
			op:    fails("no answer", did(waits("dbd", from(10, 300), endedAt(300)))),
			cause: CauseEnded, says: `"no answer"; ` + ending + `$`, remedy: `^start dbd again`,
		},
		"behind another peer": {
			op:    calling(did(waits("store", from(10, 980), did(waits("dbd", from(20, 310), endedAt(310)))))),
			cause: CauseEnded, says: `^960ms of 1s: plugin p waited for dbd, through agentd and store; dbd \(pid 812\) exited`,
		},
		"for want of memory": {
			op:    calling(did(waits("dbd", from(10, 300), endedAt(300), oom))),
			cause: CauseOOM, says: `dbd \(pid 812\) was OOM-killed 290ms after the wait began$`, remedy: `^raise the memory limit of dbd`,
		},
		"and was started again": {
			op:    calling(did(waits("dbd", from(10, 300), endedAt(300), succeeded(813, 900)))),
			cause: CauseRestarted, says: `^890ms of 1s: ` + ending + `; the new process \(pid 813\) answered 600ms after the exit$`, remedy: `^fix why dbd exited`,
		},
		"while the agent tried to connect again": {
			op: calling(did(waits("dbd", from(10, 300), endedAt(300)), &model.Fact{When: from(310, 980), What: &model.Connection{
				Network: "unix", Address: "/run/dbd", Tries: 9, Error: "ECONNREFUSED",
			}, Attribution: &model.Attribution{Evidence: model.Candidate}})),
			cause: CauseEnded, says: `^990ms of 1s: ` + ending + `$`, remedy: `^start dbd again`,
		},
		"control: it was started again at once, and then the agent waited for another": {
			op:    calling(did(waits("dbd", from(10, 300), endedAt(300), succeeded(813, 310)), waits("other", from(310, 980)))),
			cause: CausePeer, says: `^670ms of 1s: plugin p waited for other`,
		},
		"control: the agent did not wait for it": {
			op: calling(did(waits("dbd", from(10, 300), endedAt(300), clipped), waits("other", from(5, 980)))), cause: CausePeer, says: `plugin p waited for other`,
		},
		"control: it was started again, and the call fails of something else": {
			op:    fails("no addresses", did(waits("dbd", from(10, 300), endedAt(300), succeeded(813, 310)), waits("other", from(310, 980)))),
			cause: CauseFailed, says: `plugin p waited for other`,
		},
		"control: no process listens there, and the attempts may be for another call": {
			op: calling(did(&model.Fact{When: from(10, 980), What: &model.Connection{
				Network: "unix", Address: "/run/dbd", Tries: 9, Error: "ECONNREFUSED",
			}, Attribution: &model.Attribution{Evidence: model.Candidate}})),
			cause: CauseRefused, says: `agentd failed 9 times to connect to /run/dbd \(ECONNREFUSED\), while plugin p waited$`, remedy: `^$`,
		},
	})
}

// vsctl is an ADD whose agent runs ovs-vsctl for a time, and what was found then.
func vsctl(took int64, f *event.Found, acts ...func(*model.Image)) *model.Operation {
	command := ran("ovs-vsctl", 10, 10+took)
	acts = append([]func(*model.Image){dialled("unix", "/run/a.sock", from(0, 2990), served([]*model.Image{command}, nil))}, acts...)
	op := add(seen(plugin("p", 0, 3000), acts...))
	op.Calls[0].Found = f
	return op
}

func TestACommandWaitsForADeadProcess(t *testing.T) {
	process := func(absent bool) *event.Found {
		return &event.Found{Kind: event.FoundProcess, Name: "ovs-vswitchd", Absent: absent}
	}
	failed := func(op *model.Operation) *model.Operation { op.Calls[0].Runs[0].Code = 1; return op }
	const says, remedy, report = `of 3s: plugin p waited for ovs-vswitchd \(not running\), through ovs-vsctl$`, `^start ovs-vswitchd`, "openshift/origin#19531"
	rulings(t, map[string]ruling{
		"it is dead":                    {op: vsctl(2900, process(true)), cause: CausePeer, says: says, remedy: remedy, report: report},
		"the call fails":                {op: failed(vsctl(2900, process(true), wrote("signal: alarm clock"))), cause: CausePeer, says: `^plugin p failed.*alarm clock.*; 2.9s ` + says, remedy: remedy, report: report},
		"control: it lives":             {op: vsctl(2900, process(false)), cause: CauseCommand, says: `ran ovs-vsctl`, remedy: `^replace ovs-vsctl`, report: "-"},
		"control: it was not looked at": {op: vsctl(2900, &event.Found{Kind: event.FoundProcess, Unseen: "no"}), cause: CauseCommand, says: `ran ovs-vsctl`, report: "-"},
	})
	_, got := Wants(vsctl(2900, nil))
	harness.DeepEqual(t, got, &event.Want{Kind: event.FoundProcess, Name: "ovs-vswitchd"})
	if _, got := Wants(vsctl(900, nil)); got != nil {
		t.Errorf("a short command wants %+v", got)
	}
}
