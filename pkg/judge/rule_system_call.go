package judge

// systemCall: the kernel took long over something that has nothing to do with the network.
func systemCall(e *evidence) *finding {
	time, most := e.of(SystemCalls)
	if most == nil {
		return nil
	}
	f := &finding{Verdict: Verdict{Cause: CauseSystemCall, Says: "in " + most.String()}, time: time, kind: SystemCalls, candidate: most.Doubtful()}
	switch most.Name {
	case "fsync", "fdatasync", "sync", "unlinkat", "renameat", "renameat2", "mkdirat":
		f.Remedy = CauseSystemCall.remedy()
	}
	return f
}
