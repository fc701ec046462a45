package judge

import "github.com/cniscope/cniscope/pkg/model"

// CauseStopped is the cause of stoppedAgent.
const CauseStopped Cause = "agent_stopped"

func stoppedAgent(e *evidence) *finding {
	time, worst, _, _ := e.asked(func(c *model.Connection) bool {
		return c.Work != nil && c.Exchange == nil && wasHalted(c, calledFor(c))
	})
	if worst == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseStopped, Says: e.calling(worst),
		Remedy: remedyFor(worst.Agent, nameOf(worst), stateOf(worst.Work, calledFor(worst))),
	}, time: time, kind: Agents, agent: worst, heldUp: true}
}

func calledFor(c *model.Connection) model.Interval {
	return model.Interval{Start: c.Work.Own.Start, End: c.Work.Own.End}
}
