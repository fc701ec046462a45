package judge

// powerShell takes a second or two to start, each time.
func powerShell(e *evidence) *finding {
	for _, p := range e.programs() {
		if isPowerShell(p.name) || isPowerShell(p.inner) {
			return &finding{Verdict: Verdict{
				Cause: CausePowerShell, Says: p.String(),
				Remedy: "each start loads .NET and its modules anew: use " + native("powershell") + ", or keep one running",
				Report: "antrea-io/antrea#4859",
			}, time: p.time, kind: Commands, candidate: p.doubtful()}
		}
	}
	return nil
}
