package judge

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// CauseIdle is the cause of idleAgent.
const CauseIdle Cause = "agent_idle"

// quiet is the least idle share of a slow connection. On a loaded node samples find half of that, because threads wait
// for a CPU.
const quiet = 0.7

// idleAgent: the agent did nothing for most of the time, then answered. Only an answer names a rate limit
// (busyAgent).
func idleAgent(e *evidence) *finding {
	took, worst, plugin, n := e.asked(isQuiet)
	if worst == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseIdle,
		Says: fmt.Sprintf("plugin %s waited for %s%s; %s was idle for %s%s",
			plugin, Peer(worst), times(n), nameOf(worst), text.Round(time.Duration(spent(worst.Work, calledFor(worst), event.AgentIdle))),
			inFunction(worst.Work)),
		Remedy: cmp.Or(ofService(worst, plugin), fmt.Sprintf("read %s's log of that time (kubectl logs --timestamps): "+
			"%[1]s slept, or waited for something that is not traced", nameOf(worst))),
	}, time: took, kind: Agents, agent: worst}
}

func isQuiet(c *model.Connection) bool {
	w := c.Work
	if w == nil || c.Exchange != nil || c.Error != "" || w.Gone != 0 {
		return false
	}
	when := calledFor(c)
	took := when.End - when.Start
	held := spent(w, when, event.AgentStopped, event.AgentFrozen, event.AgentUninterruptible, event.AgentWaiting)
	if spent(w, when, event.AgentIdle) < took/2 || float64(max(w.CPU, held)) > (1-quiet)*float64(took) {
		return false
	}
	var did []model.Interval
	for _, im := range w.Own.Children {
		did = append(did, model.Interval{Start: im.Start, End: min(im.End, when.End)})
	}
	for _, f := range w.Own.Facts {
		at, counts := f.When, asks(f.Kind())
		if c, is := f.What.(*model.Connection); is && c.Exchange != nil {
			at, counts = asksFor(c, f.When)
			counts = counts && mayBeFor(w, at, when)
		} else if is {
			counts = true
		}
		if counts {
			did = append(did, model.Interval{Start: at.Start, End: min(at.End, when.End)})
		}
	}
	for _, m := range w.Meanwhile {
		if deed(m) != "" {
			did = append(did, m.When)
		}
	}
	return float64(covered(did)) <= (1-quiet)*float64(took)
}
