package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

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
