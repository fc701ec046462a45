package judge

// dad: a plugin waited the second or more in which others may object to an IPv6 address (RFC 4862, 5.4).
func dad(e *evidence) *finding {
	f := e.mostly(CauseDAD, "",
		CauseDAD.remedy(),
		DAD)
	if f != nil {
		f.Report = "containernetworking/plugins#680"
	}
	return f
}
