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
			cause: CauseLock, says: `^4\.9s of 5\.1s waiting for lock /run/xtables\.lock \(iptables\), held by iptables-restor of kube-proxy \(pid 812\)$`,
			remedy: `minSyncPeriod`, report: "aws/amazon-vpc-cni-k8s#2948",
		},
		"host-local queues for its own": {
			op: but(add(plugin("bridge", 0, 900, seen(plugin("host-local", 10, 800),
				waited(event.WaitLock, "/var/lib/cni/networks/pods/lock", from(20, 790), event.Actor{PID: 7, Name: "host-local", Parent: "bridge"}), queued))),
				func(c *model.Call) { c.Concurrent = 29 }),
			cause: CauseLock, remedy: `^give host-local a smaller range`, report: "containernetworking/plugins#561",
			says: `held by host-local of bridge \(pid 7\) for pod shop/web-1, then by 3 others; up to 29 other calls were under way$`,
		},
		"an agent's host-local queues": {
			op: add(seen(plugin("antrea", 0, 2300), dialled("unix", "/run/antrea.sock", from(10, 2280), served([]*model.Image{
				seen(plugin("host-local", 20, 2270), waited(event.WaitLock, "/var/lib/cni/networks/antrea/lock", from(20, 2260))),
			}, nil)))),
			cause: CauseLock, says: `^2\.24s of 2\.3s waiting for lock /var/lib/cni/networks/antrea/lock$`, remedy: `fuser -v .*; else give host-local a smaller range`, report: "containernetworking/plugins#561",
		},
		"another lock has no such remedy": {
			op: add(seen(plugin("p", 0, 900), waited(event.WaitLock, "/run/p/lock", from(20, 790)))), cause: CauseLock, says: `waiting for lock /run/p/lock$`, remedy: `^run fuser -v /run/p/lock, .* under the lock$`,
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
