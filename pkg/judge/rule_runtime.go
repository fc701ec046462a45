package judge

func runtimeGap(e *evidence) *finding {
	return e.mostly(CauseRuntime, CauseRuntime.remedy(), Between)
}

const undoneRemedy = "run kubectl describe pod, or journalctl -u containerd (crio) for that time; fix what the runtime reports there: " +
	"the plugins gave the pod its network, and a later step of the sandbox failed"
