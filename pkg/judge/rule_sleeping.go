package judge

// sleeping: a plugin waited for a timer, so it polls for something or retries.
func sleeping(e *evidence) *finding {
	return e.mostly(CauseSleep, "",
		"a plugin that sleeps is polling for something, or retrying: the trace shows what it did before and after each sleep; have that come sooner, or shorten the interval if its configuration has one", Sleep)
}
