package judge

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// CauseIdle is that of idleAgent.
const CauseIdle Cause = "agent_idle"

// quiet is the share of a connection in which an agent must have been idle to be called so: samples are
// taken ten times a second, and it works a little before it answers.
const quiet = 0.9

// idleAgent: the agent did nothing at all, for this call or for others, and then answered. So it let the call
// wait by its own will, as a rate limiter does.
func idleAgent(e *evidence) *finding {
	time, worst, plugin, n := e.asked(isQuiet)
	if worst == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause:  CauseIdle,
		Says:   fmt.Sprintf("calling %s, from plugin %s%s; %s was idle, ran nothing and waited for nobody that is seen", Peer(worst), plugin, times(n), nameOf(worst)),
		Remedy: fmt.Sprintf("perhaps a limit of %s for its API let the call wait: if its log says so, raise that limit (Cilium: --api-rate-limit), or start fewer pods at once", nameOf(worst)),
		Report: "cilium/cilium#22023",
	}, time: time, kind: Agents, agent: worst}
}

// isQuiet reports whether an agent answered late without having done anything.
func isQuiet(c *timeline.Connection) bool {
	w := c.Work
	if w == nil || c.Exchange != nil || c.Error != "" || w.Gone != 0 {
		return false
	}
	when := calledFor(c)
	took := when.End - when.Start
	if float64(spent(w, when, event.AgentIdle)) < quiet*float64(took) || w.CPU > took/10 {
		return false
	}
	var did []timeline.Interval
	for _, im := range w.Own.Children {
		did = append(did, timeline.Interval{Start: im.Start, End: min(im.End, when.End)})
	}
	for _, f := range w.Own.Facts {
		if c, is := f.What.(*timeline.Connection); asks(f.Kind()) || is && (c.Exchange == nil || !c.Exchange.Clipped && !c.Exchange.Unasked) {
			did = append(did, timeline.Interval{Start: f.When.Start, End: min(f.When.End, when.End)})
		}
	}
	for _, m := range w.Meanwhile {
		did = append(did, m.When)
	}
	return float64(covered(did)) <= (1-quiet)*float64(took)
}
