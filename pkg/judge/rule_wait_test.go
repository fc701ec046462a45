package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestHeldLock(t *testing.T) {
	const xtables = "/run/xtables.lock"
	proxy := event.Actor{PID: 812, Name: "iptables-restor", Parent: "kube-proxy"}
	queued := func(im *model.Image) {
		w := im.Facts[0].What.(*model.Wait)
		w.Passed = 3
		w.Blame = &model.Blame{Pod: event.Pod{Namespace: "shop", Name: "web-1"}}
	}
	rulings(t, map[string]ruling{
		"iptables waits for kube-proxy": {
			op:    add(plugin("portmap", 0, 5100, seen(ran("iptables", 100, 5050), waited(event.WaitLock, xtables, from(110, 5010), proxy)))),
			cause: CauseLock, says: `^4\.9s of 5\.1s: iptables waited for file lock /run/xtables\.lock, held by iptables-restor \(pid 812, child of kube-proxy\)$`,
			remedy: `minSyncPeriod`, report: "aws/amazon-vpc-cni-k8s#2948",
		},
		"whose path was not observed": {
			op:    add(plugin("portmap", 0, 5100, seen(ran("storectl", 100, 5050), waited(event.WaitLock, "", from(110, 5010))))),
			cause: CauseLock, says: `^4\.9s of 5\.1s: storectl waited for file lock of unknown path`, remedy: `^run lslocks to find the holder`,
		},
		"host-local queues for its own": {
			op: but(add(plugin("bridge", 0, 900, seen(plugin("host-local", 10, 800),
				waited(event.WaitLock, "/var/lib/cni/networks/pods/lock", from(20, 790), event.Actor{PID: 7, Name: "host-local", Parent: "bridge"}), queued))),
				func(c *model.Call) { c.Concurrent = 29 }),
			cause: CauseLock, remedy: `^give host-local a smaller range`, report: "containernetworking/plugins#561",
			says: `held by host-local \(pid 7, child of bridge\) for pod shop/web-1, then by 3 other processes; up to 29 other calls were in progress$`,
		},
		"an agent's host-local queues": {
			op: add(seen(plugin("antrea", 0, 2300), dialled("unix", "/run/antrea.sock", from(10, 2280), served([]*model.Image{
				seen(plugin("host-local", 20, 2270), waited(event.WaitLock, "/var/lib/cni/networks/antrea/lock", from(20, 2260))),
			}, nil)))),
			cause: CauseLock, says: `^2\.24s of 2\.3s: plugin host-local waited for file lock /var/lib/cni/networks/antrea/lock$`, remedy: `fuser -v .*; otherwise give host-local a smaller range`, report: "containernetworking/plugins#561",
		},
		"another process has host-local's": {
			op: add(plugin("bridge", 0, 900, seen(plugin("host-local", 10, 800), waited(event.WaitLock, "/var/lib/cni/networks/pods/lock", from(20, 790),
				event.Actor{PID: 9, Name: "flock", Parent: "backup"})))),
			cause: CauseLock, says: `held by flock \(pid 9, child of backup\)$`, remedy: `^kill flock \(pid 9\) if it hangs; otherwise shorten its work under the lock$`,
		},
		"another lock has no such remedy": {
			op: add(seen(plugin("p", 0, 900), waited(event.WaitLock, "/run/p/lock", from(20, 790)))), cause: CauseLock, says: `waited for file lock /run/p/lock$`, remedy: `^run fuser -v /run/p/lock, .* under the lock$`,
		},
		"that a container's runtime started it says nothing": {
			op:    add(seen(plugin("p", 0, 900), waited(event.WaitLock, "/run/l", from(20, 790), event.Actor{PID: 7, Name: "kube-proxy", Parent: "containerd-shim"}))),
			cause: CauseLock, says: `held by kube-proxy \(pid 7\)$`,
		},
		"control: a lock that is had at once": {
			op: add(seen(plugin("p", 0, 900), waited(event.WaitLock, "/run/l", from(20, 21)), slept(from(30, 900)))), cause: CauseSleep,
		},
	})
}

// Of two successive causes, the longer one has the remedy.
func TestTwoCausesInARow(t *testing.T) {
	both := func(lock, peer int64) *model.Operation {
		return calling(func(c *model.Connection) {
			c.Work.Own.Children = []*model.Image{seen(plugin("host-local", 5, 8+lock), waited(event.WaitLock, "/var/lib/cni/networks/pods/lock", from(6, 6+lock),
				event.Actor{PID: 9, Name: "flock"}))}
		}, did(waits("dbd", from(10+lock, 10+lock+peer), was(event.AgentStopped, "do_signal_stop", from(10+lock, 10+lock+peer)))))
	}
	rulings(t, map[string]ruling{
		"the second one is longer": {
			op: both(460, 500), cause: CausePeer, says: `^500ms of 1s: plugin p waited for dbd \(stopped\).*; 460ms: plugin host-local waited for file lock /var/lib/cni/networks/pods/lock, held by flock \(pid 9\)$`, remedy: `^run kill -CONT 812`,
		},
		"by far": {
			op: both(200, 770), cause: CausePeer, says: `^770ms of 1s: plugin p waited for dbd \(stopped\), through agentd$`, remedy: `^run kill -CONT 812`,
		},
		"the first one is longer": {
			op: both(500, 460), cause: CauseLock, says: `^500ms of 1s: plugin host-local waited for file lock .*; 460ms: plugin p waited for dbd \(stopped\)`, remedy: `^kill flock \(pid 9\)`,
		},
	})
}

func TestContended(t *testing.T) {
	rulings(t, map[string]ruling{
		"a burst waits for rtnl": {
			op: but(add(seen(plugin("bridge", 0, 900), asked("RTM_NEWLINK", from(0, 800)), waited(event.WaitMutex, "rtnl", from(10, 790), event.Actor{PID: 7, Name: "bridge", Parent: "containerd"}))),
				func(c *model.Call) { c.Concurrent = 29 }),
			cause: CauseKernelLock, says: `^780ms of 900ms: plugin bridge waited for kernel lock rtnl, held by bridge \(pid 7\); up to 29 other calls were in progress$`, report: "aws/amazon-vpc-cni-k8s#3764",
		},
		"many short waits": {
			op:    add(seen(plugin("bridge", 0, 900), func(im *model.Image) { im.Tallies[model.FactMutex] = model.Tally{Count: 400, Time: 700 * ms} })),
			cause: CauseKernelLock, says: `briefly each time \(400 times\)$`,
		},
		"control: the kernel itself takes long": {
			op: add(seen(plugin("bridge", 0, 900), asked("RTM_NEWLINK", from(0, 800)), waited(event.WaitMutex, "rtnl", from(10, 40)))), cause: CauseNetwork,
		},
	})
}

func TestDAD(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin waits until nobody objects": {
			op:    add(seen(plugin("bridge", 0, 2000), detects(from(50, 1900)), slept(from(60, 1900)))),
			cause: CauseDAD, says: `^1\.85s of 2s: plugin bridge waited for IPv6 duplicate address detection of fd00::5 on eth0$`, remedy: `enabledad = false`, report: "containernetworking/plugins#680",
		},
		"control: it does something else meanwhile": {
			op: add(with(seen(plugin("bridge", 0, 2000), detects(from(50, 1900))), cpu(1990))), cause: CausePlugin,
		},
	})
}

// mounting adds a bind mount.
func mounting(when model.Interval, change ...func(*event.Mount)) func(*model.Image) {
	return func(im *model.Image) {
		m := &event.Mount{Name: "mount", Source: "/csi/data", Target: "/run/netns/a", Flags: []string{"bind"}}
		for _, f := range change {
			f(m)
		}
		fact(im, when, &model.Mount{Mount: m})
	}
}

func TestASlowMount(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin binds a path whose file system does not answer": {
			op:    add(seen(plugin("bridge", 0, 2000), mounting(from(50, 1900)))),
			cause: CauseMount, says: `^1\.85s of 2s: bridge waited for mount of /run/netns/a \(bind, from /csi/data\)$`, remedy: `program that serves the file system`,
		},
		"a file system by its type, and in vain": {
			op: add(seen(plugin("bridge", 0, 2000), mounting(from(50, 1900), func(m *event.Mount) {
				m.FSType, m.Source, m.Flags, m.Error = "fuse", "none", nil, "ENOTCONN"
			}))),
			cause: CauseMount, says: `bridge waited for mount of /run/netns/a \(fuse, failed with ENOTCONN\)$`,
		},
		"several, of which the longest is named": {
			op: add(seen(plugin("bridge", 0, 2000), mounting(from(50, 700)), mounting(from(700, 1900), func(m *event.Mount) {
				m.Name, m.Source, m.Target, m.Flags = "umount2", "", "/run/netns/b", []string{"detach"}
			}))),
			cause: CauseMount, says: `^1\.85s of 2s: bridge waited for unmount of /run/netns/b \(detach\) \(2 times\)$`,
		},
		"a command's counts, too": {
			op: add(plugin("bridge", 0, 2000, with(ran("mount", 10, 1950), mounting(from(50, 1900))))), cause: CauseMount, says: `mount waited for mount of`,
		},
		"control: it computes meanwhile": {
			op: add(seen(plugin("bridge", 0, 2000), mounting(from(50, 100)), slept(from(100, 1900)))), cause: CauseSleep,
		},
	})
}

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

func TestSystemCall(t *testing.T) {
	rulings(t, map[string]ruling{
		"a slow disk":                  {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 480)))), cause: CauseSystemCall, says: `^470ms of 500ms: p waited in system call fsync$`, remedy: `disk`},
		"control: it is soon over":     {op: add(with(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 20))), cpu(490))), cause: CausePlugin},
		"of another call less is said": {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "mount", from(10, 480)))), cause: CauseSystemCall, remedy: `^$`},
	})
}

func TestNetworkConfiguration(t *testing.T) {
	rulings(t, map[string]ruling{
		"the kernel takes long for a request": {
			op: add(seen(plugin("p", 0, 500), asked("RTM_DELLINK", from(10, 480)))), cause: CauseNetwork, says: `^470ms of 500ms: p waited for network configuration RTM_DELLINK$`,
		},
		"control: for something else": {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 480)))), cause: CauseSystemCall},
		"an agent of unknown name asks for it": {
			op: add(seen(plugin("p", 0, 500), dialled("unix", "/run/a.sock", from(0, 490), served(nil, nil), func(c *model.Connection) {
				c.Work.Own.Name = ""
				asked("RTM_NEWLINK", from(10, 480))(c.Work.Own)
			}))),
			cause: CauseNetwork,
		},
	})
}

func TestUnexplained(t *testing.T) {
	rulings(t, map[string]ruling{
		"nobody looked":      {op: add(plugin("p", 0, 500)), cause: CauseUnexplained, says: `^500ms of 500ms: plugin p did unobserved work$`, remedy: `detail`},
		"nothing was seen":   {op: but(add(plugin("p", 0, 500)), func(c *model.Call) { c.Seen = true }), cause: CauseUnexplained, remedy: `^$`},
		"it waits for files": {op: add(seen(plugin("p", 0, 500), polled(from(10, 500)))), cause: CauseUnexplained, says: `plugin p waited for something unobserved$`},
	})
}

func TestSleeping(t *testing.T) {
	const agent = "/run/a.sock"
	asks := func(at ...int64) (all []func(*model.Image)) {
		for _, t := range at {
			all = append(all, dialled("unix", agent, from(t, t+2)))
		}
		return all
	}
	adds := func(address string) func(*model.Image) {
		return func(im *model.Image) {
			fact(im, from(5, 6), &model.Request{Request: &event.Request{Object: event.ObjectAddress, Verb: event.VerbAdd, Address: address}})
		}
	}
	sleeps := []func(*model.Image){slept(from(13, 200)), slept(from(203, 480))}
	rulings(t, map[string]ruling{
		"a plugin polls": {op: add(seen(plugin("p", 0, 500), slept(from(10, 480)))), cause: CauseSleep, says: `^470ms of 500ms: plugin p slept$`, remedy: `^shorten the plugin's poll`},
		"a plugin polls until the runtime kills it": {
			op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), func(im *model.Image) { im.Signal = "SIGKILL" })), cause: CauseSleep,
			says: `plugin p slept; then plugin p was killed$`, remedy: `^read plugin p's log of that time`,
		},
		"control: another plugin is killed after it": {
			op:    add(seen(plugin("p", 0, 500), slept(from(10, 480))), with(plugin("q", 500, 520), func(im *model.Image) { im.Signal = "SIGKILL" })),
			cause: CauseSleep, says: `plugin p slept; then plugin q was killed$`, remedy: `^shorten the plugin's poll`,
		},
		"a plugin asks an agent again": {
			op: add(seen(plugin("p", 0, 500), append(asks(10, 201, 481), sleeps...)...)), cause: CauseSleep,
			says: `^464ms of 500ms: plugin p slept between its 3 requests of /run/a.sock$`, remedy: `^read the log of the program that listens at /run/a.sock`,
		},
		"the second thread of a sleep wakes late": {
			op: add(seen(plugin("p", 0, 2200), append(asks(10, 715, 1420), slept(from(13, 714)), slept(from(12, 719)),
				slept(from(718, 1418)), slept(from(717, 1424)), slept(from(1422, 2122)))...)), cause: CauseSleep,
			says: `plugin p slept between its 3 requests of /run/a.sock$`,
		},
		"control: it asked all before it slept": {
			op: add(seen(plugin("p", 0, 500), append(asks(1, 4, 8), sleeps...)...)), cause: CauseSleep, says: `plugin p slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: one sleep before its last request": {
			op: add(seen(plugin("p", 0, 500), append(asks(1, 4, 7, 490), slept(from(13, 480)))...)), cause: CauseSleep, says: `plugin p slept$`,
		},
		"a plugin polls after it added an IPv6 address": {
			op: add(seen(plugin("p", 0, 2000), append(sleeps, adds("fd00::5/64"), slept(from(490, 1980)))...)), cause: CauseSleep,
			says: `plugin p slept \(3 times\)$`, remedy: `^read plugin p's log: .* detection of fd00::5/64; if it did`,
		},
		"control: an IPv4 address": {
			op: add(seen(plugin("p", 0, 500), append(sleeps, adds("10.0.0.5/24"))...)), cause: CauseSleep, says: `slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: longer than detection lasts": {
			op: add(seen(plugin("p", 0, 5000), adds("fd00::5/64"), slept(from(10, 4900)))), cause: CauseSleep, says: `slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: a thread of one that computes": {op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), cpu(490))), cause: CausePlugin},
	})
}
