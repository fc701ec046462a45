package judge

import (
	"fmt"
	"net/netip"

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
			Verdict: Verdict{Cause: CausePeer, Says: p.String(), Remedy: peerRemedy(p.peer, p.when)},
			time:    p.Time, kind: Agents, candidate: p.Doubtful(), agent: p.peer,
			heldUp: heldUp(p.peer, p.when), known: stateOf(p.peer.Work, p.when) != nil,
		}
	}
	return nil
}

func peerRemedy(c *model.Connection, when model.Interval) string {
	if c.Agent == nil || c.Agent.PID == 0 {
		return remoteRemedy(c)
	}
	if r := remedyFor(c.Agent, peerName(c), stateOf(c.Work, when)); r != "" || c.Work == nil || len(c.Work.States) == 0 {
		return r
	}
	for f, next := range model.Each[*model.Connection](c.Work.Own.Facts) {
		if next.Exchange != nil && min(f.When.End, when.End)-max(f.When.Start, when.Start) > (when.End-when.Start)/2 {
			return "" // which may be the cause
		}
	}
	return fmt.Sprintf("read what %s (pid %d) logged at that time: it took that long to answer, and no wait of its own was observed", peerName(c), c.Agent.PID)
}

func remoteRemedy(c *model.Connection) string {
	to, err := netip.ParseAddrPort(c.Address)
	switch {
	case err != nil:
		return "" // unknown process
	case isAPIServerAddress(to):
		return "run kubectl get --raw '/readyz?verbose', since the API server seems to listen there, and repair what fails there; if nothing does, measure packet loss between this node and it (ping, nstat TcpRetransSegs)"
	case to.Addr().IsLoopback():
		return fmt.Sprintf("run ss -tlnp 'sport = :%d' to name who serves there: resume it (kill -CONT) if /proc/PID/status says State: T, else read its log of that time", to.Port())
	}
	return fmt.Sprintf("measure packet loss between this node and %s (ping, nstat TcpRetransSegs), and read the server's log of that time", to.Addr())
}
