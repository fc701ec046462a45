package judge

// sleeping: a plugin waited for a timer, such as to poll or retry.
func sleeping(e *evidence) *finding {
	return e.mostly(CauseSleep, "",
		CauseSleep.remedy(), Sleep)
}
