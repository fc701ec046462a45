package judge

// missing: the chain ended before its end though nothing had failed, so the runtime did not
// find the next program, or gave up.
func missing(e *evidence) *Verdict {
	return &Verdict{
		Cause: CauseMissing, Says: e.Failure + ", though what ran before did not fail",
		Remedy: "check that its binary is in the runtime's CNI bin folder and executable: cniscope doctor",
		Report: "containerd/containerd#8419",
	}
}
