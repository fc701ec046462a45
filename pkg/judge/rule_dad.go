package judge

// dad: a plugin waited the second or more in which others may object to an IPv6 address (RFC 4862, 5.4).
func dad(e *evidence) *finding {
	f := e.mostly(CauseDAD, "",
		"addresses that IPAM hands out once need no detection: switch it off (bridge: enabledad = false; else net.ipv6.conf.default.accept_dad = 0 in the pod's namespace)",
		DAD)
	if f != nil {
		f.Report = "containernetworking/plugins#680"
	}
	return f
}
