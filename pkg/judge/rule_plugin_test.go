package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestSlowPlugin(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin computes": {op: add(with(plugin("p", 0, 500), cpu(480))), cause: CausePlugin, says: `^480ms of 500ms: plugin p used 480ms of CPU time$`},
		"a plugin computes and waits": {
			op: add(with(plugin("p", 0, 500), func(im *model.Image) { im.CPU, im.RunDelay = 300*ms, 190*ms })), cause: CausePlugin,
			says: `: plugin p used 300ms of CPU time and waited 190ms for a CPU \(sums over its threads\)$`,
		},
	})
}

func TestHostLocalScan(t *testing.T) {
	rulings(t, map[string]ruling{
		"it opens one file after the other": {
			op:    add(plugin("bridge", 0, 1000, with(seen(plugin("host-local", 10, 950), waited(event.WaitCall, "openat", from(20, 300))), cpu(600)))),
			cause: CauseScan, says: `host-local read one file for each allocated address$`, report: "Azure/azure-container-networking#2817",
		},
		"control: it opens a file on a slow disk": {
			op:    add(plugin("bridge", 0, 1000, seen(plugin("host-local", 10, 950), waited(event.WaitCall, "openat", from(20, 900)), leasing("/data/leases")))),
			cause: CauseSystemCall, says: `host-local waited in system call openat, which waited for the file system of /data/leases$`, remedy: `^set dataDir of host-local to a directory on a faster disk`,
		},
		"control: it waits for its disk": {
			op: add(plugin("bridge", 0, 1000, seen(plugin("host-local", 10, 950), waited(event.WaitCall, "fsync", from(20, 900))))), cause: CauseSystemCall,
		},
		"control: nobody knows what it does": {
			op: add(plugin("bridge", 0, 1000, seen(plugin("host-local", 10, 950)))), cause: CauseUnexplained,
		},
		"control: another plugin computes": {
			op: add(plugin("bridge", 0, 1000, with(plugin("ipam", 10, 950), cpu(940)))), cause: CausePlugin,
		},
	})
}

func leasing(dir string) func(*model.Image) {
	return func(im *model.Image) { im.Run.Configuration = &event.Configuration{DataDir: dir} }
}

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

func TestLeakedChild(t *testing.T) {
	rulings(t, map[string]ruling{
		"the next plugin begins when the child is gone": {
			op:    add(plugin("first", 0, 100, with(ran("watcher", 50, 1100), outliving)), plugin("second", 1105, 1200)),
			cause: CauseLeakedChild, says: `^1\.01s of 1\.2s: the runtime waited for watcher \(pid 0\) to close the standard output of plugin first, which had exited$`, remedy: `^change plugin first so that it redirects the standard output of watcher`,
		},
		"and who called a delegate goes on then": {
			op:    add(plugin("main", 0, 1200, plugin("ipam", 10, 100, with(ran("watcher", 50, 1100), outliving)), ran("ip", 1105, 1110))),
			cause: CauseLeakedChild, says: `^1\.01s of 1\.2s: plugin main waited for watcher \(pid 0\) to close the standard output of plugin ipam`,
		},
		"the last one of several counts": {
			op: add(plugin("first", 0, 100, with(ran("before", 50, 200), outliving), with(ran("watcher", 50, 1100), outliving), with(ran("after", 60, 300), outliving)),
				plugin("second", 1105, 1200)),
			cause: CauseLeakedChild, says: `the runtime waited for watcher`,
		},
		"it is gone a tenth of the time before": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 980), outliving)), plugin("second", 1100, 1200)), cause: CauseLeakedChild,
		},
		"control: a bit longer before": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 979), outliving)), plugin("second", 1100, 1200)), cause: CauseRuntime,
		},
		"control: a child that lives longer than that": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 5000), outliving)), plugin("second", 1105, 1200)), cause: CauseRuntime,
		},
		"control: one that was gone long before": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 500), outliving)), plugin("second", 1105, 1200)), cause: CauseRuntime,
		},
		"control: one that was waited for": {
			op: add(plugin("first", 0, 100, ran("watcher", 50, 100)), plugin("second", 1105, 1200)), cause: CauseRuntime,
		},
	})
}

func TestMissing(t *testing.T) {
	never := func(c *model.Call) { c.NeverRun = []string{"portmap"} }
	found := func(faults ...event.Program) func(*model.Call) {
		return func(c *model.Call) {
			never(c)
			c.Programs = &event.Programs{Looked: []string{"portmap"}, Faults: faults}
		}
	}
	foreign := event.Program{Name: "portmap", File: "/b/portmap", Fault: event.FaultArchitecture, Needs: "aarch64", Has: "x86-64"}
	unlinked := event.Program{Name: "p", File: "/b/p", Fault: event.FaultLibrary, Needs: "libx.so.1"}
	old := event.Program{Name: "p", File: "/b/p", Fault: event.FaultVersion, Needs: "GLIBC_2.34", Has: "2.31"}
	looked := func(faults ...event.Program) func(*model.Call) {
		return func(c *model.Call) { c.Programs = &event.Programs{Faults: faults} }
	}
	rulings(t, map[string]ruling{
		"the next plugin is built for another architecture": {
			op: but(add(plugin("p", 0, 50)), found(foreign)), cause: CauseMissing,
			says: `^plugin "portmap" cannot start: /b/portmap is built for aarch64, this node is x86-64$`, remedy: `^replace /b/portmap with its build for x86-64$`,
		},
		"the next plugin is not there": {
			op: but(add(plugin("p", 0, 50)), found(event.Program{Name: "portmap", Fault: event.FaultAbsent, Has: "/b"})), cause: CauseMissing,
			says: `cannot start: it is not in /b$`, remedy: `^install plugin portmap into the CNI binary directory`, report: "containerd/containerd#8419",
		},
		"the next plugin is a link to nothing": {
			op: but(add(plugin("p", 0, 50)), found(event.Program{Name: "portmap", File: "/b/portmap", Fault: event.FaultAbsent, Has: "/b", Needs: "/k/cni"})), cause: CauseMissing,
			says: `cannot start: /b/portmap is a broken link to /k/cni$`, remedy: `^run ln -sf`,
		},
		"control: the next plugin's program is sound": {
			op: but(add(plugin("p", 0, 50)), found()), cause: CauseRuntime, says: `did not run, though its program can start$`, remedy: `runtime's log`,
		},
		"the loader did not find a library": {
			op: but(add(with(plugin("p", 0, 50), exit(127))), looked(unlinked)), cause: CauseMissing,
			says: `^plugin p exited 127; plugin "p" cannot start: /b/p needs the library libx.so.1`, remedy: `package that has libx.so.1`,
		},
		"the loader did not find a version": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), looked(old)), cause: CauseMissing,
			says: `^plugin p exited 1; plugin "p" cannot start: /b/p needs GLIBC_2.34`, remedy: `statically linked`,
		},
		"control: it fails in its own words": {
			op: but(add(with(with(plugin("p", 0, 50), exit(1)), wrote("no way"))), looked(old)), cause: CauseFailed,
		},
		"control: it failed by itself": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), looked(unlinked)), cause: CauseFailed,
		},
		"control: a shell script that did not find a command": {
			op: but(add(with(plugin("p", 0, 50), exit(127))), looked(foreign)), cause: CauseFailed,
		},
		"its IPAM cannot be started": {
			op:    but(add(with(with(plugin("p", 0, 50), exit(1)), wrote("fork/exec /b/portmap: exec format error"))), looked(foreign)),
			cause: CauseMissing, says: `exec format error"; plugin "portmap" cannot start: /b/portmap is built for aarch64`, remedy: `^replace /b/portmap`,
		},
		"control: the same words of another program": {
			op:    but(add(with(with(plugin("p", 0, 50), exit(1)), wrote("fork/exec /b/other: exec format error"))), looked(foreign)),
			cause: CauseFailed,
		},
		"loopback, beside a network that was made": {
			op: but(add(plugin("p", 0, 50)), func(c *model.Call) {
				c.NeverRun = []string{"loopback"}
				c.Programs = &event.Programs{Looked: []string{"loopback"}, Faults: []event.Program{{Name: "loopback", Fault: event.FaultAbsent, Has: "/b"}}}
			}),
			cause: CauseMissing, says: `^plugin "loopback" cannot start: it is not in /b$`, remedy: `^install plugin loopback into the CNI binary directory`, report: "containerd/containerd#8419",
		},
		"the next plugin never ran": {
			op: but(add(plugin("p", 0, 50)), never), cause: CauseMissing, says: `^plugin portmap did not run; its binary may be missing$`, remedy: `binary directory`, report: "containerd/containerd#8419",
		},
		"control: because the one before it failed": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), never), cause: CauseFailed,
		},
	})
}
