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
