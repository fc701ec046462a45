package judge

func networkConfiguration(e *evidence) *finding {
	return e.mostly(CauseNetwork, CauseNetwork.remedy(),
		Network)
}
