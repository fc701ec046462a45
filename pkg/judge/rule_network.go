package judge

// networkConfiguration: the kernel itself took that long to do what a plugin asked for.
func networkConfiguration(e *evidence) *finding {
	return e.mostly(CauseNetwork, "in ",
		"the request and its interface are in the trace: a module that must be loaded, or an interface with many members, takes the kernel long",
		Network)
}
