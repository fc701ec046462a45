package judge

// unexplained: cniscope does not know, and says so.
func unexplained(e *evidence) *finding {
	f := e.mostly(CauseUnexplained, "", "", Unexplained, Waiting)
	if f != nil && !e.call.Seen {
		f.Remedy = `[probe] detail = "auto" or "always" looks into plugins`
	}
	return f
}
