package judge

// runtimeGap: no plugin ran at all.
func runtimeGap(e *evidence) *finding {
	return e.mostly(CauseRuntime, "", "look at the runtime's own spans and its log at that time", Between)
}
