package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestHaltedPlugin(t *testing.T) {
	halted := func(state event.AgentState, by string) func(*model.Image) {
		return func(im *model.Image) { fact(im, from(20, 480), &model.Halt{State: state, By: by}) }
	}
	const group = "/sys/fs/cgroup/a/cgroup.freeze"
	holder := event.Actor{PID: 812, Name: "kube-proxy", State: event.AgentStopped, By: "gdb (pid 9)"}
	rulings(t, map[string]ruling{
		"by a signal": {
			op:    add(seen(plugin("p", 0, 500), halted(event.AgentStopped, ""), slept(from(10, 490)), waited(event.WaitCall, "read", from(10, 490)))),
			cause: CauseHalted, says: `^460ms of 500ms: plugin p was stopped$`, remedy: `^run kill -CONT `,
		},
		"a command, by a debugger": {
			op:    add(plugin("p", 0, 500, seen(ran("iptables", 10, 490), halted(event.AgentStopped, "gdb (pid 9)")))),
			cause: CauseHalted, says: `^460ms of 500ms: command iptables was traced by gdb \(pid 9\)$`, remedy: `^kill gdb \(pid 9\), or detach it, to resume iptables`,
		},
		"by a freezer": {
			op:    add(seen(plugin("p", 0, 500), halted(event.AgentFrozen, group))),
			cause: CauseHalted, says: `plugin p was frozen by ` + group + `$`, remedy: `^thaw p: echo 0 > ` + group,
		},
		"by the older freezer": {
			op:    add(seen(plugin("p", 0, 500), halted(event.AgentFrozen, "/f/a/freezer.state"))),
			cause: CauseHalted, says: `frozen by /f/a/freezer.state$`, remedy: `^thaw p: echo THAWED > /f/a/freezer.state`,
		},
		"who has the lock": {
			op:    add(seen(plugin("p", 0, 500), waited(event.WaitLock, "/run/xtables.lock", from(10, 490), holder))),
			cause: CauseLock, says: `held by kube-proxy \(pid 812\), which was traced by gdb \(pid 9\)$`, remedy: `^kill gdb \(pid 9\), or detach it, to resume kube-proxy`, report: "",
		},
		"control: not for long": {
			op: add(seen(plugin("p", 0, 5000), halted(event.AgentStopped, ""), slept(from(500, 4990)))), cause: CauseSleep,
		},
	})
}
