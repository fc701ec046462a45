package judge

import "path"

// heldLock: another process held a file's lock. iptables (legacy) and host-local have one for the node.
func heldLock(e *evidence) *finding {
	time, most := e.of(Locks)
	if most == nil {
		return nil
	}
	_, longest, _ := e.waited(func(w *wait) bool { return w.part.Kind == Locks && w.part.Name == most.Name })
	f := &finding{Verdict: Verdict{
		Cause: CauseLock, Says: most.String() + e.beside(),
		Remedy: "see what has the lock, and why it needs it for so long",
	}, time: time, kind: Locks, candidate: most.doubtful()}
	switch {
	case path.Base(most.Name) == "xtables.lock":
		f.Remedy = "let what has the lock do less at once (kube-proxy: mode nftables, or a longer minSyncPeriod), or use iptables' nft backend, which needs no lock"
		f.Report = "aws/amazon-vpc-cni-k8s#2948"
	case longest != nil && e.image(longest).Run != nil && e.image(longest).Run.Plugin == "host-local":
		f.Remedy = "host-local has one lock for each network and reads all its files inside: fewer addresses in a range, a faster disk (dataDir on tmpfs), or another IPAM"
		f.Report = "containernetworking/plugins#561"
	}
	return f
}
