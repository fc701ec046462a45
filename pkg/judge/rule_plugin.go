package judge

func slowPlugin(e *evidence) *finding {
	_, most := e.of(Plugins)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CausePlugin, Says: "plugin " + most.Name + " was on a CPU, or waiting for one",
		Remedy: CausePlugin.remedy(),
	}, time: most.Time, kind: Plugins}
}
