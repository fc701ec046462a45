package judge

// slowPlugin: a plugin computed.
func slowPlugin(e *evidence) *finding {
	_, most := e.of(Plugins)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CausePlugin, Says: "on a CPU, or waiting for one, in plugin " + most.Name,
		Remedy: CausePlugin.remedy(),
	}, time: most.Time, kind: Plugins}
}
