package judge

// slowPlugin: a plugin computed.
func slowPlugin(e *evidence) *finding {
	_, most := e.of(Plugins)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CausePlugin, Says: "on a CPU, or waiting for one, in plugin " + most.Name,
		Remedy: "more CPU time for it (the node's, or a CPU limit of the runtime's cgroup), or less to compute: perf record -a -g while a pod starts shows its authors where",
	}, time: most.Time, kind: Plugins}
}
