package judge

// unexplained: cniscope does not know, and says so.
func unexplained(e *evidence) *finding {
	time, most := e.of(Unexplained, Waiting)
	if most == nil {
		return nil
	}
	f := &finding{Verdict: Verdict{Cause: CauseUnexplained, Says: most.String()}, time: time, kind: most.Kind}
	if !e.call.Seen {
		f.Remedy = `[probe] detail = "auto" or "always" looks into plugins`
	}
	return f
}
