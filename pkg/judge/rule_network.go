package judge

// networkConfiguration: the kernel itself took that long to do what a plugin asked for.
func networkConfiguration(e *evidence) *finding {
	return e.mostly(CauseNetwork, "in ",
		CauseNetwork.remedy(),
		Network)
}
