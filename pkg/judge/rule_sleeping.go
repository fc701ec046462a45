package judge

// sleeping: a plugin waited for a timer, so it polls for something or retries.
func sleeping(e *evidence) *finding {
	return e.mostly(CauseSleep, "",
		"a plugin that sleeps asks for something again and again, or tries again: the trace shows what it did before and after, which is what must come sooner; if its configuration has an interval for that, shorten it", Sleep)
}
