package judge

// networkConfiguration: the kernel itself took that long to do what a plugin asked for.
func networkConfiguration(e *evidence) *finding {
	time, most := e.of(Network)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseNetwork, Says: "in " + most.String(),
		Remedy: "the request and its interface are in the trace: a module that must be loaded, or an interface with many members, takes the kernel long",
	}, time: time, kind: Network}
}
