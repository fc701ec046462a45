package judge

// networkConfiguration: the kernel itself was slow to carry out a plugin's request.
func networkConfiguration(e *evidence) *finding {
	return e.mostly(CauseNetwork, "",
		CauseNetwork.remedy(),
		Network)
}
