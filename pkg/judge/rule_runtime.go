package judge

// runtimeGap: no plugin ran.
func runtimeGap(e *evidence) *finding {
	return e.mostly(CauseRuntime, "", CauseRuntime.remedy(), Between)
}

// undoneRemedy is for a sandbox that failed after every plugin had succeeded.
const undoneRemedy = "run kubectl describe pod, or journalctl -u containerd (crio) for that time, and repair what the runtime reports there: " +
	"the plugins gave the pod its network, and a later step of the sandbox failed"
