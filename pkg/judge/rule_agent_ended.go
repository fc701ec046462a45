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

const whyExited = "run kubectl logs --previous for its last lines; run kubectl describe pod for its exit code (Last State) and " +
	"failed probes (Events); for a host service, read the journal"

func agentEnded(e *evidence) *finding {
	var gone *model.Connection
	for i := range e.waits {
		if c := e.waits[i].connection(); c != nil && ended(c) && (gone == nil || c.Work.Gone > gone.Work.Gone) {
			gone = c
		}
	}
	if s := e.endedPeer(); s != nil && (gone == nil || s.agent.Work.Gone > gone.Work.Gone) {
		return e.withoutPeer(s)
	}
	if gone == nil {
		return nil
	}
	time, _, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Address == gone.Address })
	says := "plugin " + plugin + " waited for " + Peer(gone)
	return &finding{Verdict: ending(gone, says, e.restarted(gone)), time: time, kind: Agents, agent: gone}
}

func ended(c *model.Connection) bool { return c.Work != nil && c.Work.Gone != 0 }

func (e *evidence) restarted(gone *model.Connection) bool {
	return gone.Work.Successor != nil && gone.Work.Back < e.call.End
}

func (e *evidence) endedPeer() (last *span) {
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent != nil && s.agent.Exchange != nil && ended(s.agent) && (last == nil || s.agent.Work.Gone > last.agent.Work.Gone) {
			last = s
		}
	}
	return last
}

// withoutPeer attributes the wait for a process that ended, and the unanswered time until another one answered.
func (e *evidence) withoutPeer(s *span) *finding {
	gone, until := s.agent, e.call.End
	if e.restarted(gone) {
		until = gone.Work.Back
	}
	took, _, _, _ := e.asked(func(c *model.Connection) bool { return c == gone })
	for i := range e.spans {
		if asker := &e.spans[i]; asker.agent != nil && asker.agent == s.served {
			took += time.Duration(max(0, min(asker.own, min(asker.end, until)-gone.Work.Gone)))
		}
	}
	for i := range e.waits {
		w := &e.waits[i]
		if isRefused(w) && e.spans[w.span].agent == s.served && w.start >= gone.Work.Gone && w.start < until {
			took += time.Duration(w.own)
		}
	}
	return &finding{
		Verdict: ending(gone, "plugin "+s.plugin+" waited for "+peerName(gone)+", "+s.via, e.restarted(gone)),
		time:    took, kind: Agents, candidate: s.candidate, agent: gone, heldUp: e.call.End-until < int64(aftermath),
	}
}

func ending(gone *model.Connection, waiting string, restarted bool) Verdict {
	who, w := nameOf(gone), gone.Work
	v, how, since := Verdict{Cause: CauseEnded}, "exited", "it was called"
	if gone.Exchange != nil {
		since = "the wait began"
	}
	switch {
	case w.Killed == "OOM":
		v.Cause, how = CauseOOM, "was OOM-killed"
		v.Remedy = fmt.Sprintf("raise the memory limit of %s (resources.limits.memory); if dmesg says constraint=CONSTRAINT_NONE, the whole node ran out of memory: move pods off the node", who)
	case restarted:
		v.Cause = CauseRestarted
		v.Remedy = fmt.Sprintf("fix why %s exited, unless it was restarted on purpose; "+whyExited, who)
	default:
		v.Remedy = fmt.Sprintf("start %s again and fix why it exited; "+whyExited, who)
	}
	v.Says = fmt.Sprintf("%s; %s (pid %d) %s %s after %s",
		waiting, who, gone.Agent.PID, how, text.Round(time.Duration(w.Gone-w.Own.Start)), since)
	if w.Successor != nil {
		v.Says += fmt.Sprintf("; the new process (pid %d) answered %s after the exit",
			w.Successor.PID, text.Round(time.Duration(w.Back-w.Gone)))
	}
	return v
}

// endedLast returns the connection of a failed run whose agent ended, unless the run called another process
// afterwards.
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

// peerEndedLast is the finding for a process that ended shortly before the run failed, while the run's agent waited
// for it.
func (e *evidence) peerEndedLast(run *model.Image) *finding {
	s := e.endedPeer()
	if s == nil || s.plugin != run.Run.Plugin || e.restarted(s.agent) || run.End-s.agent.Work.Gone > int64(aftermath) {
		return nil
	}
	return e.withoutPeer(s)
}
