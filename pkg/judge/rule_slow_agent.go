package judge

import "github.com/cniscope/cniscope/pkg/timeline"

// slowAgent: an agent took the time, and nothing that it ran or asked for explains it.
func slowAgent(e *evidence) *finding {
	time, worst, _, _ := e.asked(func(c *timeline.Connection) bool { return c.Error == "" })
	if worst == nil {
		return nil
	}
	says := ""
	for i := range e.Parts {
		if p := &e.Parts[i]; p.Kind == Agents && p.Name == Peer(worst) {
			says = p.String()
			break
		}
	}
	return &finding{Verdict: Verdict{
		Cause: CauseAgent, Says: says,
		Remedy: "look into the agent: its log at that time, its CPU limit, what it waits for",
		Report: "cilium/cilium#45103",
	}, time: time, kind: Agents, agent: worst}
}
