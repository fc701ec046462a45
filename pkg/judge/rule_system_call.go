package judge

func systemCall(e *evidence) *finding {
	time, most := e.of(SystemCalls)
	if most == nil {
		return nil
	}
	f := &finding{
		Verdict: Verdict{Cause: CauseSystemCall, Says: most.String()},
		time:    time, kind: SystemCalls, candidate: most.Doubtful(),
	}
	switch most.Name {
	case "fsync", "fdatasync", "sync", "unlinkat", "renameat", "renameat2", "mkdirat":
		f.Remedy = CauseSystemCall.remedy()
	}
	return f
}
