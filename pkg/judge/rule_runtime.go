package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

func runtimeGap(e *evidence) *finding {
	return e.mostly(CauseRuntime, CauseRuntime.remedy(), Between)
}

const undoneRemedy = "run kubectl describe pod, or journalctl -u containerd (crio) for that time, and repair what the runtime reports there: " +
	"the plugins gave the pod its network, and a later step of the sandbox failed"

// Late explains a late report of NRI.
func Late(s *event.Sandbox) *Verdict {
	if s.Late == 0 {
		return nil
	}
	v := &Verdict{
		Cause: CauseRuntime, Remedy: CauseRuntime.remedy(),
		Says: fmt.Sprintf("NRI reported the sandbox %s after its process began", text.Round(time.Duration(s.Late))),
	}
	if len(s.Plugins) == 0 {
		return v
	}
	var names []string
	for _, p := range s.Plugins {
		names = append(names, fmt.Sprintf("%s (pid %d)", p.Name, p.PID))
	}
	all := strings.Join(names, ", ")
	v.Says += ": the runtime waits for each NRI plugin in turn, and also calls " + all
	v.Remedy = "read what " + all + " logged at that time; speed up its RunPodSandbox or stop it: each pod waits for it"
	return v
}
