package judge

// dad: the kernel does not use an IPv6 address before nobody has objected for a second or
// more (RFC 4862, 5.4), and a plugin waits for that.
func dad(e *evidence) *finding {
	time, most := e.of(DAD)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseDAD, Says: most.String(),
		Remedy: "addresses that IPAM hands out once need no detection: switch it off (bridge: enabledad = false; else net.ipv6.conf.default.accept_dad = 0 in the pod's namespace)",
		Report: "containernetworking/plugins#680",
	}, time: time, kind: DAD}
}
