package judge

// sleeping: a plugin waited for a timer, so it polls for something or retries.
func sleeping(e *evidence) *finding {
	return e.mostly(CauseSleep, "",
		"ask the plugin's authors what it waits for: the trace shows what it did before and after", Sleep)
}
