package judge

import (
	"fmt"
	"path"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// heldLock: another process held a file's lock. iptables (legacy) and host-local have one for the node.
func heldLock(e *evidence) *finding {
	time, most := e.of(Locks)
	if most == nil {
		return nil
	}
	_, longest, _ := e.waited(func(w *wait) bool { return w.part.Kind == Locks && w.part.Name == most.Name })
	f := &finding{Verdict: Verdict{
		Cause: CauseLock, Says: most.String() + e.beside(), Remedy: release(most.Name, longest),
	}, time: time, kind: Locks, candidate: most.doubtful()}
	switch {
	case path.Base(most.Name) == "xtables.lock":
		f.Remedy = "let what has the lock do less at once (kube-proxy: mode nftables, or a longer minSyncPeriod), or use iptables' nft backend, which needs no lock"
		f.Report = "aws/amazon-vpc-cni-k8s#2948"
	case longest != nil && e.image(longest).Run != nil && e.image(longest).Run.Plugin == "host-local":
		const own = "host-local has one lock for each network and reads all its files inside: fewer addresses in a range, a faster disk (dataDir on tmpfs), or another IPAM"
		if h := longest.what.(*timeline.Wait).Holder; h != nil && h.Name == "host-local" {
			f.Remedy = own
		} else {
			f.Remedy += "; " + own
		}
		f.Report = "containernetworking/plugins#561"
	}
	return f
}

// release says how to get whoever has a lock to let go of it.
func release(name string, longest *wait) string {
	if longest != nil {
		if h := longest.what.(*timeline.Wait).Holder; h != nil && h.Name != "" && h.PID != 0 {
			return fmt.Sprintf("%s (pid %d) holds it for too long: kill it if it hangs, else let it do less while it has the lock", h.Name, h.PID)
		}
	}
	if name == "" {
		return "let those who have these locks do less at once"
	}
	return fmt.Sprintf("lslocks, or fuser -v %s, names who has it: kill that process if it hangs, else let it do less while it has the lock", name)
}
