package judge

// sleeping: a plugin waited for a timer, so it polls for something or retries.
func sleeping(e *evidence) *finding {
	time, most := e.of(Sleep)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseSleep, Says: most.String(),
		Remedy: "ask the plugin's authors what it waits for: the trace shows what it did before and after",
	}, time: time, kind: Sleep}
}
