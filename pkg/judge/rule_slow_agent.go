package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func slowAgent(e *evidence) *finding {
	time, worst, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Error == "" && c.Exchange == nil })
	if worst == nil {
		return nil
	}
	says := e.calling(worst)
	if says != "" && inFunction(worst.Work) == "" {
		says += e.within(plugin, time)
	}
	return &finding{Verdict: Verdict{
		Cause: CauseAgent, Says: says, Remedy: agentRemedy(worst, plugin),
	}.beside(plugin), time: time, kind: Agents, agent: worst}
}

// within says where a plugin was, if it waited for most of its time.
func (e *evidence) within(plugin string, waited time.Duration) string {
	for i := range e.spans {
		s := &e.spans[i]
		own := s.image.Run != nil && s.agent == nil && s.plugin == plugin
		if own && 2*int64(waited) > s.end-s.start && s.in() != "" {
			return ", " + s.in()
		}
	}
	return ""
}

func (e *evidence) calling(c *model.Connection) string {
	for i := range e.Parts {
		if p := &e.Parts[i]; p.Kind == Agents && (p.Name == Peer(c) || p.peer == c) {
			return p.String()
		}
	}
	return ""
}

func agentRemedy(c *model.Connection, plugin string) string {
	if c.Agent == nil {
		return silent(c, plugin)
	}
	if c.Work != nil {
		when := calledFor(c)
		state := stateOf(c.Work, when)
		if half := (when.End - when.Start) / 2; state == nil && c.Work.CPU >= half {
			state = &model.Spent{State: event.AgentRunning}
		} else if state != nil && state.State == event.AgentRunning && state.Time < half {
			state = nil
		}
		if r := remedyFor(c.Agent, nameOf(c), state); r != "" {
			return r
		}
	}
	return fmt.Sprintf("read %[1]s's log of that time (kubectl logs --timestamps); raise the CPU limit of %[1]s if nr_throttled in cpu.stat of its cgroup grows", nameOf(c))
}
