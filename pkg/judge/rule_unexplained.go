package judge

func unexplained(e *evidence) *finding {
	f := e.mostly(CauseUnexplained, "", Unexplained, Waiting)
	if f != nil && !e.call.Seen {
		f.Remedy = CauseUnexplained.remedy()
	}
	return f
}
