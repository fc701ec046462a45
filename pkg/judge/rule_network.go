package judge

// networkConfiguration: the kernel itself took that long to do what a plugin asked for.
func networkConfiguration(e *evidence) *finding {
	return e.mostly(CauseNetwork, "in ",
		"a module that the request needs can be loaded at boot (/etc/modules-load.d), a bridge with very many ports divided; the trace has the request and its interface",
		Network)
}
