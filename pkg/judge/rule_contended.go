package judge

// contended: a plugin waited for a kernel lock, such as rtnl, which serializes network changes of the whole node.
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
