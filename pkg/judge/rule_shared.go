package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// sharedHold: during the call the agent waited for a process that was stopped or frozen, or ran a program, for other
// calls as well. All calls wait until that is over, and the remedy holds for each of them.
func sharedHold(e *evidence) *finding {
	_, c, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Error == "" && c.Work != nil })
	if c == nil || wasHalted(c, calledFor(c)) {
		return nil
	}
	own, _, _, _ := e.asked(func(of *model.Connection) bool { return of == c })
	for _, most := range []*deeds{longest(c.Work.Meanwhile, true), longest(c.Work.Meanwhile, false)} {
		if most == nil {
			continue
		}
		if f := most.finding(c, plugin); f != nil {
			f.time, f.kind, f.shared = min(own, time.Duration(most.took())), Agents, true
			return f
		}
	}
	return nil
}

// finding says that a plugin waited until an agent, called by c, had done the deeds; nil if that is not likely.
func (d *deeds) finding(c *model.Connection, plugin string) *finding {
	if d.most.Image != nil {
		if !d.most.Perhaps { // it is another call's, and this call may have waited for something else
			return nil
		}
		name := d.most.Image.Name
		v := Verdict{Cause: CauseCommand, Remedy: instead(name)}
		if v.Remedy == "" {
			v.Remedy = raiseLimit(c, name+" shares")
		}
		if n := len(d.when); n > 1 {
			name = fmt.Sprintf("%d runs of %s", n, name)
		}
		v.Says = fmt.Sprintf("in %s, by %s, %s, while plugin %s waited", name, Peer(c), d.whose(), plugin)
		return &finding{Verdict: v}
	}
	next, is := d.most.Fact.What.(*model.Connection)
	if !is {
		return nil
	}
	last, _ := furthest(next, d.most.When)
	if !wasHalted(last, d.most.When) {
		return nil
	}
	return &finding{heldUp: true, Verdict: Verdict{
		Cause: CausePeer, Remedy: remedyFor(last.Agent, peerName(last), stateOf(last.Work, d.most.When)),
		Says: fmt.Sprintf("waiting for %s, %s, while plugin %s waited", behindWhom(next, d.most.When, nameOf(c)), d.whose(), plugin),
	}}
}
