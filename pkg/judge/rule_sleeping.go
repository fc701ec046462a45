package judge

// sleeping: a plugin waited for a timer, so it polls for something or retries.
func sleeping(e *evidence) *finding {
	return e.mostly(CauseSleep, "",
		CauseSleep.remedy(), Sleep)
}
