package judge

import (
	"fmt"
	"strings"
)

// heldLock: somebody else had the lock on a file. iptables (legacy) and host-local have
// one for the whole node.
func heldLock(m *matter) *finding {
	time, most := m.of(Locks)
	if most == nil {
		return nil
	}
	f := &finding{Verdict{
		Cause: CauseLock, Says: most.String(),
		Remedy: "see who holds it and why it takes that long",
	}, time}
	switch {
	case strings.Contains(most.Name, "/xtables.lock"):
		f.Remedy = "let what holds it do less at once (kube-proxy: mode nftables, or a longer minSyncPeriod), or use iptables' nft backend, which needs no lock"
		f.Report = "aws/amazon-vpc-cni-k8s#2948"
	case strings.Contains(most.Name, "/lock"):
		f.Remedy = "host-local takes one lock for each network and reads all its files inside: fewer addresses in a range, a faster disk (dataDir on tmpfs), or another IPAM"
		f.Report = "containernetworking/plugins#561"
	}
	if n := m.call.Concurrent; n > 1 {
		f.Says += fmt.Sprintf("; up to %d other calls were under way", n)
	}
	return f
}

// contended: the kernel changes the network of the whole node under one lock, rtnl.
func contended(m *matter) *finding {
	time, most := m.of(KernelLocks)
	if most == nil {
		return nil
	}
	says := most.String()
	if n := m.call.Concurrent; n > 1 {
		says += fmt.Sprintf("; up to %d other calls were under way", n)
	}
	return &finding{Verdict{
		Cause: CauseKernelLock, Says: says,
		Remedy: "fewer pods at once; fewer changes a pod; a newer kernel, which holds rtnl for one namespace only",
		Report: "aws/amazon-vpc-cni-k8s#3764",
	}, time}
}

// dad: the kernel does not use an IPv6 address before nobody has objected for a second or
// more (RFC 4862, 5.4), and a plugin waits for that.
func dad(m *matter) *finding {
	time, most := m.of(DAD)
	if most == nil {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseDAD, Says: most.String(),
		Remedy: "addresses that IPAM hands out once need no detection: switch it off (bridge: enabledad = false; else net.ipv6.conf.default.accept_dad = 0 in the pod's namespace)",
		Report: "containernetworking/plugins#680",
	}, time}
}

// sleeping: a plugin waited for a timer, so it polls for something or retries.
func sleeping(m *matter) *finding {
	time, most := m.of(Sleep, Waiting)
	if most == nil {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseSleep, Says: most.String(),
		Remedy: "ask the plugin's authors what it polls for: the trace shows what it did before and after",
	}, time}
}
