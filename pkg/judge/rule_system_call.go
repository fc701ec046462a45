package judge

// systemCall: a system call unrelated to the network was slow.
func systemCall(e *evidence) *finding {
	time, most := e.of(SystemCalls)
	if most == nil {
		return nil
	}
	f := &finding{Verdict: Verdict{Cause: CauseSystemCall, Says: most.String()}, time: time, kind: SystemCalls, candidate: most.Doubtful()}
	switch most.Name {
	case "fsync", "fdatasync", "sync", "unlinkat", "renameat", "renameat2", "mkdirat":
		f.Remedy = CauseSystemCall.remedy()
	}
	return f
}
