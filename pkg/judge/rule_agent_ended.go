package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// The causes of agentEnded.
const (
	CauseEnded     Cause = "agent_ended"
	CauseRestarted Cause = "agent_restarted"
	CauseOOM       Cause = "agent_oom"
)

// agentEnded: the agent ended while it was called, and the plugin went on trying.
func agentEnded(e *evidence) *finding {
	var gone *model.Connection
	for i := range e.waits {
		if c := e.waits[i].connection(); c != nil && ended(c) && (gone == nil || c.Work.Gone > gone.Work.Gone) {
			gone = c
		}
	}
	if gone == nil {
		return nil
	}
	time, _, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Address == gone.Address })
	return &finding{Verdict: ending(gone, plugin, gone.Work.Successor != nil && gone.Work.Back < e.call.End), time: time, kind: Agents, agent: gone}
}

func ended(c *model.Connection) bool { return c.Work != nil && c.Work.Gone != 0 }

// ending says how an agent ended, and whether another process answered in its place after that.
// restarted: the call went on with that one.
func ending(gone *model.Connection, plugin string, restarted bool) Verdict {
	who, w := nameOf(gone), gone.Work
	v, how := Verdict{Cause: CauseEnded}, "ended"
	const why = "kubectl logs --previous has its last lines, kubectl describe pod (Last State) its exit code, the journal those of a service"
	switch {
	case w.Killed == "OOM":
		v.Cause, how = CauseOOM, "was OOM-killed"
		v.Remedy = fmt.Sprintf("raise the memory limit of %s (resources.limits.memory); move pods off the node if dmesg says constraint=CONSTRAINT_NONE, for then the whole node ran out", who)
	case restarted:
		v.Cause = CauseRestarted
		v.Remedy = fmt.Sprintf("mend what ended %s, unless it was restarted on purpose: %s; Events name a failed liveness probe", who, why)
	default:
		v.Remedy = fmt.Sprintf("start %s again and mend what ended it: %s", who, why)
	}
	v.Says = fmt.Sprintf("calling %s, from plugin %s; %s (pid %d) %s %s after it was called",
		Peer(gone), plugin, who, gone.Agent.PID, how, text.Round(time.Duration(w.Gone-w.Own.Start)))
	if w.Successor != nil {
		v.Says += fmt.Sprintf(", and was started again (pid %d), which answered %s later", w.Successor.PID, text.Round(time.Duration(w.Back-w.Gone)))
	}
	return v
}

// endedLast returns the connection during which the agent of a run that failed ended; nil if that was not so,
// or if the run had somebody else to call after that.
func endedLast(run *model.Image) (last *model.Connection) {
	for f, c := range model.Each[*model.Connection](run.Facts) {
		if ended(c) {
			last = c
		} else if last != nil && f.When.Start >= last.Work.Gone && c.Error == "" {
			last = nil
		}
	}
	return last
}
