package judge

func slowPlugin(e *evidence) *finding {
	_, most := e.of(Plugins)
	if most == nil {
		return nil
	}
	says := "plugin " + most.Name + " was on a CPU, or waiting for one"
	if most.Detail != "" {
		says += ", " + most.Detail
	}
	return &finding{Verdict: Verdict{
		Cause: CausePlugin, Says: says,
		Remedy: CausePlugin.remedy(),
	}, time: most.Time, kind: Plugins}
}
