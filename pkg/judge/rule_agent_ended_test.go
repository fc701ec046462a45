package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// endedAt: the agent that answered a connection ended then.
func endedAt(at int64) func(*model.Connection) {
	return func(c *model.Connection) { c.Work.Gone = at * ms }
}

// succeeded: another process answered in its place from then on.
func succeeded(pid uint32, at int64) func(*model.Connection) {
	return func(c *model.Connection) { c.Work.Successor, c.Work.Back = &event.Actor{PID: pid}, at*ms }
}

func oom(c *model.Connection) { c.Work.Killed = "OOM" }

// by is who answered a connection, with that process id.
func by(name string, pid uint32) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Answered, c.Agent = true, &event.Actor{Process: event.Process(rune(pid)), PID: pid, Name: name}
	}
}

func TestAgentEnded(t *testing.T) {
	rulings(t, map[string]ruling{
		"in the middle of a call, which fails": {
			op:    add(with(seen(plugin("p", 0, 900), wrote("EOF"), dialled("unix", "/run/a.sock", from(10, 800), served(nil, nil), endedAt(800))), exit(1))),
			cause: CauseEnded, says: `^p exited 1: code 11: "EOF"; before that it was calling agentd at /run/a\.sock, from plugin p; agentd \(pid 44\) ended 790ms after it was called$`,
			remedy: `kubectl logs --previous.*kubectl describe pod`,
		},
		"and nobody answered after that": {
			op: add(with(seen(plugin("p", 0, 900), wrote("EOF"), dialled("unix", "/run/a.sock", from(10, 400), served(nil, nil), endedAt(400)),
				dialled("unix", "/run/a.sock", from(410, 890), turnedDown(9, "ECONNREFUSED"))), exit(1))),
			cause: CauseEnded, says: `agentd \(pid 44\) ended 390ms after it was called$`,
		},
		"and was started again": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(10, 400), served(nil, nil), endedAt(400), succeeded(45, 900)),
				dialled("unix", "/run/a.sock", from(410, 900), turnedDown(9, "ECONNREFUSED")),
				dialled("unix", "/run/a.sock", from(900, 990), served(nil, nil), by("agentd", 45)))),
			cause: CauseRestarted, says: `^970ms of 1s calling agentd at /run/a\.sock, from plugin p; agentd \(pid 44\) ended 390ms after it was called, and was started again \(pid 45\), which answered 500ms later$`,
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
