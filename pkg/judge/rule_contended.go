package judge

// contended: the kernel changes the network of the whole node under one lock, rtnl, and has others beside it.
func contended(e *evidence) *finding {
	time, most := e.of(KernelLocks)
	if most == nil {
		return nil
	}
	f := &finding{Verdict: Verdict{
		Cause: CauseKernelLock, Says: most.String() + e.beside(),
		Remedy: CauseKernelLock.remedy(),
	}, time: time, kind: KernelLocks, candidate: most.Doubtful()}
	if most.Name == "rtnl" {
		f.Report = "aws/amazon-vpc-cni-k8s#3764"
	}
	return f
}
