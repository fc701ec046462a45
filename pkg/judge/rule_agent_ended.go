package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// CauseEnded is that of agentEnded.
const CauseEnded Cause = "agent_ended"

// agentEnded: the agent ended while it was called, and the plugin went on trying.
func agentEnded(e *evidence) *finding {
	var gone *timeline.Connection
	for i := range e.waits {
		if c := e.waits[i].connection(); c != nil && ended(c) && (gone == nil || c.Work.Gone > gone.Work.Gone) {
			gone = c
		}
	}
	if gone == nil {
		return nil
	}
	time, _, plugin, _ := e.asked(func(c *timeline.Connection) bool { return c.Address == gone.Address })
	return &finding{Verdict: e.ending(gone, plugin), time: time, kind: Agents, agent: gone}
}

func ended(c *timeline.Connection) bool { return c.Work != nil && c.Work.Gone != 0 }

// ending says that an agent ended, and whether another process answered at its address after that.
func (e *evidence) ending(gone *timeline.Connection, plugin string) Verdict {
	who := nameOf(gone)
	v := Verdict{
		Cause: CauseEnded,
		Says: fmt.Sprintf("calling %s, from plugin %s; %s (pid %d) ended %s after it was called",
			Peer(gone), plugin, who, gone.Agent.PID, text.Round(time.Duration(gone.Work.Gone-gone.Work.Own.Start))),
		Remedy: fmt.Sprintf("%s must run through: its last lines (kubectl logs --previous) and its exit code (kubectl describe pod: Last State) say why it ended; of a service of the host, its journal does", who),
	}
	if next := e.successor(gone); next != nil {
		v.Says += fmt.Sprintf(", and was started again (pid %d)", next.Agent.PID)
	}
	return v
}

// successor returns the first connection that another process answered where an agent had ended; nil if none did.
func (e *evidence) successor(gone *timeline.Connection) (next *timeline.Connection) {
	for i := range e.waits {
		c := e.waits[i].connection()
		if c != nil && c.Address == gone.Address && c.Answered && c.Agent.Process != gone.Agent.Process &&
			(next == nil || c.Work != nil && next.Work != nil && c.Work.Own.Start < next.Work.Own.Start) {
			next = c
		}
	}
	return next
}

// endedLast returns the connection during which the agent of a run that failed ended; nil if that was not so,
// or if the run had somebody else to call after that.
func endedLast(run *timeline.Image) (last *timeline.Connection) {
	for f, c := range timeline.Each[*timeline.Connection](run.Facts) {
		if ended(c) {
			last = c
		} else if last != nil && f.When.Start >= last.Work.Gone && c.Error == "" {
			last = nil
		}
	}
	return last
}
