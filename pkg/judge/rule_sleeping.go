package judge

func sleeping(e *evidence) *finding {
	return e.mostly(CauseSleep, CauseSleep.remedy(), Sleep)
}
