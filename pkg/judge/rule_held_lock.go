package judge

import (
	"fmt"
	"path"
)

// heldLock: somebody else had the lock on a file. iptables (legacy) and host-local have
// one for the whole node.
func heldLock(m *matter) *finding {
	time, most := m.of(Locks)
	if most == nil {
		return nil
	}
	_, longest, _ := m.waited(func(w *wait) bool { return w.part.Kind == Locks && w.part.Name == most.Name })
	f := &finding{Verdict: Verdict{
		Cause: CauseLock, Says: most.String() + m.beside(),
		Remedy: "see what has the lock, and why it needs it for so long",
	}, time: time, kind: Locks}
	switch {
	case path.Base(most.Name) == "xtables.lock":
		f.Remedy = "let what has the lock do less at once (kube-proxy: mode nftables, or a longer minSyncPeriod), or use iptables' nft backend, which needs no lock"
		f.Report = "aws/amazon-vpc-cni-k8s#2948"
	case longest != nil && m.image(longest).Run != nil && m.image(longest).Run.Plugin == "host-local":
		f.Remedy = "host-local has one lock for each network and reads all its files inside: fewer addresses in a range, a faster disk (dataDir on tmpfs), or another IPAM"
		f.Report = "containernetworking/plugins#561"
	}
	return f
}

// beside says how many calls there were beside this one, where there were many.
func (m *matter) beside() string {
	if m.call.Concurrent < 2 {
		return ""
	}
	return fmt.Sprintf("; up to %d other calls were under way", m.call.Concurrent)
}
