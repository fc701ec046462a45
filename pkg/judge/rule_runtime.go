package judge

// runtimeGap: no plugin ran at all.
func runtimeGap(e *evidence) *finding {
	time, most := e.of(Between)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseRuntime, Says: most.String(),
		Remedy: "look at the runtime's own spans and its log at that time",
	}, time: time, kind: Between}
}
