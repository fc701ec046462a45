package judge

// missing: the chain stopped early without a failure: the next plugin was not found, or the runtime gave up.
func missing(e *evidence) *Verdict {
	return &Verdict{
		Cause: CauseMissing, Says: e.Failure + ", though what ran before did not fail",
		Remedy: CauseMissing.remedy(),
		Report: "containerd/containerd#8419",
	}
}
