package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// sharedHold: the agent waited for a halted process, or ran a program, possibly for other calls. All calls wait for
// that, so the remedy holds for each.
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

func (d *deeds) finding(c *model.Connection, plugin string) *finding {
	if d.most.Image != nil {
		if !d.most.Perhaps { // the call may have waited for something else
			return nil
		}
		name := d.most.Image.Name
		v := Verdict{Cause: CauseCommand, Remedy: instead(name)}
		if v.Remedy == "" {
			v.Remedy = raiseLimit(c, name)
		}
		v.Says = fmt.Sprintf("%s, %s, ran %s%s, while plugin %s waited", Peer(c), d.whose(), name, times(len(d.when)), plugin)
		return &finding{Verdict: v}
	}
	next := d.connection()
	if next == nil {
		return nil
	}
	last, _ := furthest(next, d.most.When)
	if !wasHalted(last, d.most.When) {
		return nil
	}
	return &finding{heldUp: true, Verdict: Verdict{
		Cause: CausePeer, Remedy: remedyFor(last.Agent, peerName(last), stateOf(last.Work, d.most.When)),
		Says: fmt.Sprintf("plugin %s waited while %s, %s, waited for %s", plugin, nameOf(c), d.whose(), behindWhom(next, d.most.When)),
	}}
}
