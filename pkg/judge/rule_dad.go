package judge

// dad: the kernel does not use an IPv6 address before nobody has objected for a second or
// more (RFC 4862, 5.4), and a plugin waits for that.
func dad(e *evidence) *finding {
	f := e.mostly(CauseDAD, "",
		"addresses that IPAM hands out once need no detection: switch it off (bridge: enabledad = false; else net.ipv6.conf.default.accept_dad = 0 in the pod's namespace)",
		DAD)
	if f != nil {
		f.Report = "containernetworking/plugins#680"
	}
	return f
}
