package judge

// unexplained: cniscope does not know, and says so.
func unexplained(e *evidence) *finding {
	f := e.mostly(CauseUnexplained, "", "", Unexplained, Waiting)
	if f != nil && !e.call.Seen {
		f.Remedy = CauseUnexplained.remedy()
	}
	return f
}
