package judge

// hungry is the share of a call that it has to wait for a CPU before that is the cause.
const hungry = 0.4

// starved: there is too much to do for the CPUs. Everything takes long then, and whatever
// took longest says nothing; but what others held up is not the CPU's fault.
func starved(e *evidence) *finding {
	held, _ := e.of(Locks, KernelLocks, DAD, Agents, Sleep)
	if float64(e.starved) < hungry*float64(e.Took) || held > e.starved {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseStarved, Says: "waiting for a CPU",
		Remedy: CauseStarved.remedy(),
	}, time: e.starved, overall: true}
}
