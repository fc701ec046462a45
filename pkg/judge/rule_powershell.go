package judge

// powerShell: each start takes one or two seconds.
func powerShell(e *evidence) *finding {
	for _, p := range e.programs() {
		if isPowerShell(p.name) || isPowerShell(p.inner) {
			return &finding{Verdict: Verdict{
				Cause: CausePowerShell, Says: p.String() + e.unconfirmed(p), Remedy: CausePowerShell.remedy(),
			}.beside(p.by[0].plugin), time: p.time, kind: Commands, candidate: p.candidate}
		}
	}
	return nil
}
