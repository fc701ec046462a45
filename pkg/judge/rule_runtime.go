package judge

// runtimeGap: no plugin ran at all.
func runtimeGap(e *evidence) *finding {
	return e.mostly(CauseRuntime, "", "the runtime's log of that time says what it did between two plugins; its own spans, too, if it has any ([relay] listen)", Between)
}
