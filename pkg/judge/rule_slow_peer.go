package judge

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/model"
)

// CausePeer is the cause of slowPeer.
const CausePeer Cause = "behind_agent"

func slowPeer(e *evidence) *finding {
	for i := range e.Parts { // largest first
		p := &e.Parts[i]
		if p.Kind != Agents || p.Asked == "" || p.peer == nil {
			continue
		}
		return &finding{
			Verdict: Verdict{Cause: CausePeer, Says: p.String(), Remedy: peerRemedy(p.peer, p.In, p.when)},
			time:    p.Time, kind: Agents, candidate: p.Doubtful(), agent: p.peer,
			heldUp: heldUp(p.peer, p.when), known: stateOf(p.peer.Work, p.when) != nil,
		}
	}
	return nil
}

func peerRemedy(c *model.Connection, plugin string, when model.Interval) string {
	if c.Agent == nil || c.Agent.PID == 0 {
		return silent(c, plugin)
	}
	if r := remedyFor(c.Agent, peerName(c), stateOf(c.Work, when)); r != "" || c.Work == nil || len(c.Work.States) == 0 {
		return r
	}
	for f, next := range model.Each[*model.Connection](c.Work.Own.Facts) {
		if next.Exchange != nil && min(f.When.End, when.End)-max(f.When.Start, when.Start) > (when.End-when.Start)/2 {
			return "" // which may be the cause
		}
	}
	return fmt.Sprintf("read the log of %s (pid %d) of that time: its answer took that long, without an observed wait", peerName(c), c.Agent.PID)
}
