package judge

// runtimeGap: no plugin ran at all.
func runtimeGap(e *evidence) *finding {
	return e.mostly(CauseRuntime, "", CauseRuntime.remedy(), Between)
}
