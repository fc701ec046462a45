package judge

import "time"

const dadMost = 3 * time.Second

// dad: a plugin waited for duplicate address detection (RFC 4862, 5.4).
func dad(e *evidence) *finding {
	f := e.mostly(CauseDAD, CauseDAD.remedy(),
		DAD)
	if f != nil {
		f.Report = "containernetworking/plugins#680"
	}
	return f
}
