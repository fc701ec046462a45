package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestStarved(t *testing.T) {
	rulings(t, map[string]ruling{
		"runnable, and no CPU": {
			op:    add(with(seen(plugin("p", 0, 1000, with(ran("iptables", 100, 600), delayed(450)))), delayed(300))),
			cause: CauseStarved, says: `^750ms of 1s: the processes of the call waited for a CPU$`, remedy: `load`,
		},
		"the CPU is not to blame for what others held up": {
			op:    add(with(seen(plugin("p", 0, 1000), waited(event.WaitLock, "/run/l", from(0, 590))), delayed(410))),
			cause: CauseLock, says: `^590ms of 1s: plugin p waited for file lock`,
		},
		"threads wait side by side, and that counts once": {
			op:    add(with(seen(plugin("p", 0, 1000), waited(event.WaitMutex, "rtnl", from(0, 900))), delayed(5000))),
			cause: CauseKernelLock,
		},
		"host-local below an agent that has a CPU limit": {
			op: calling(was(event.AgentRunning, "", from(0, 990)), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{with(with(plugin("host-local", 10, 480), cpu(5)), delayed(900))}
			}),
			cause: CauseStarved, says: `^470ms of 1s: the processes of the call waited for a CPU$`, remedy: `^raise the CPU limit of agentd, shared by its plugins`,
		},
		"control: host-local computes there": {
			op: calling(was(event.AgentRunning, "", from(0, 990)), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{with(with(plugin("host-local", 10, 900), cpu(880)), delayed(10))}
			}),
			cause: CauseScan, remedy: `^shrink host-local's ranges`,
		},
		"control: the agent gets no CPU, and waits for a stopped process for others, too": {
			op: calling(was(event.AgentRunning, "", from(0, 990)), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{with(with(plugin("host-local", 10, 430), cpu(5)), delayed(900))}
			}, others(7, waits("dbd", from(10, 980), was(event.AgentStopped, "do_signal_stop", from(10, 980))), from(10, 980))),
			cause: CausePeer, remedy: `^run kill -CONT 812`,
		},
		"control: the agent gets no CPU, and ran nothing": {
			op:    add(with(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served(nil, nil), was(event.AgentRunning, "", from(0, 990)))), delayed(450))),
			cause: CauseAgent,
		},
		"control: the agent was idle for the rest": {
			op: calling(was(event.AgentIdle, "", from(430, 990)), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{with(with(plugin("host-local", 10, 430), cpu(5)), delayed(900))}
			}),
			cause: CauseAgent,
		},
		"iptables reads a long table, on a busy machine": {
			op:    add(with(seen(plugin("portmap", 0, 1000, longTable(10, 500, 120, 370), longTable(500, 990, 120, 370))), delayed(5))),
			cause: CauseCommand, says: `^980ms of 1s: plugin portmap ran iptables \(2 times\)`,
			remedy: `^replace iptables with nftables .*; or run kube-proxy in mode nftables or ipvs, .* 120ms of CPU`,
		},
		"a plugin computes, on a busy machine": {
			op: add(with(with(seen(plugin("p", 0, 1000)), cpu(300)), delayed(690))), cause: CausePlugin,
		},
		"a plugin computes beside its sleeping threads, on a busy machine": {
			op: add(with(with(seen(plugin("p", 0, 1000), slept(from(0, 990))), cpu(500)), delayed(450))), cause: CausePlugin,
		},
		"control: a plugin computes for a short part of its time": {
			op: add(with(with(seen(plugin("p", 0, 2000), slept(from(0, 1990))), cpu(350)), delayed(1600))), cause: CauseStarved,
		},
		"control: a plugin sleeps, and hardly computes, on a busy machine": {
			op: add(with(with(seen(plugin("p", 0, 1000), slept(from(0, 990))), cpu(30)), delayed(690))), cause: CauseStarved,
		},
		"control: the commands are fast on a machine that is not busy": {
			op:    add(with(seen(plugin("portmap", 0, 1000, longTable(10, 500, 40, 450), longTable(500, 990, 40, 450))), delayed(5))),
			cause: CauseStarved, remedy: `load`,
		},
		"control: computing is no waiting": {
			op: add(with(seen(plugin("p", 0, 1000)), cpu(1000))), cause: CausePlugin,
		},
	})
}

func longTable(from, to, computed, delay int64) *model.Image {
	return with(with(ran("iptables", from, to), cpu(computed)), delayed(delay))
}
