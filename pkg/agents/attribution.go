package agents

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// claim is for which calls an agent may have done something.
type claim struct {
	first  *connection   // below which it is drawn; nil if it was not seen
	others []*connection // of other calls, which it may have been for as well
	// nobodys: it began before the connections to the agent did.
	nobodys bool
	// by is the agent, if nobody sees who calls it.
	by *event.Actor
	model.Attribution
}

// Certain is the claim that something was done for a call, by an agent that nobody was seen to call; nil: it is
// not known which.
func Certain(by *event.Actor) active.Claim {
	return &claim{by: by, Attribution: model.Attribution{Evidence: model.Certain}}
}

// Evidence is described at active.Claim.
func (cl *claim) Evidence() (*model.Attribution, *event.Actor) { return &cl.Attribution, cl.by }

// Did is described at active.Claim.
func (cl *claim) Did(im *model.Image, f *model.Fact) { cl.did(deed{image: im, fact: f}) }

// attribute finds the connection for which the agent did something, by the containers that it mentions, or
// by being open when that began (0: always); nil if there is none.
func (a *agent) attribute(mentions []string, began int64) *claim {
	if len(mentions) == 0 {
		return a.overlapping(began)
	}
	found := a.named(mentions)
	switch {
	case len(found) == 0:
		return nil
	case len(mentions) == 1:
		return &claim{first: found[len(found)-1], Attribution: model.Attribution{Evidence: model.Certain}}
	}
	return a.perhaps(found)
}

// overlapping finds the connections that were open when something began, for which it may have been done. What
// began before all of them was done for none; but each may have waited for it.
func (a *agent) overlapping(began int64) *claim {
	var found []*connection
	for _, c := range a.calls {
		if began == 0 || began >= c.fact.When.Start {
			found = append(found, c)
		}
	}
	switch {
	case len(found) > 0:
		return a.perhaps(found)
	case len(a.calls) == 0:
		return nil
	}
	cl := a.perhaps(a.calls)
	cl.nobodys = true
	return cl
}

// perhaps is the claim that something was done for one of these connections. As long as they are the same, claims
// share the list: hundreds of things that an agent does while hundreds call it.
func (a *agent) perhaps(found []*connection) *claim {
	if a.among == nil || !slices.Equal(a.among.found, found) {
		each := eachCall(found)
		a.among = &among{slices.Clone(found), claim{first: each[0], others: each[1:], Attribution: model.Attribution{Evidence: model.Candidate, Others: keysOf(each[1:])}}}
	}
	cl := a.among.claim
	return &cl
}

// among is what perhaps says of some connections.
type among struct {
	found []*connection
	claim claim
}

// eachCall leaves the first connection of each call.
func eachCall(all []*connection) (some []*connection) {
	for _, c := range all {
		if !slices.ContainsFunc(some, func(other *connection) bool { return other.owner.Call == c.owner.Call }) {
			some = append(some, c)
		}
	}
	return some
}

func keysOf(calls []*connection) (keys []model.Key) {
	for _, c := range calls {
		keys = append(keys, c.owner.Op.KeyOf(c.owner.Call))
	}
	return keys
}

// done is the process that stands for what a claim says was done.
func (cl *claim) done() *active.Process {
	if len(cl.others) > 0 || cl.Periodic {
		return cl.first.work.shared
	}
	return cl.first.work.own
}

// named lists the connections of the open calls for any of these containers. Calls that the runtime
// stands for go before others that name the same container, open connections before closed ones.
func (a *agent) named(containers []string) (found []*connection) {
	for _, vouched := range []bool{true, false} {
		for _, from := range [][]*connection{a.calls, a.recent} {
			for _, c := range from {
				if op := c.owner.Op; op.Closed == "" && op.Vouched() == vouched && slices.Contains(containers, op.ContainerID) {
					found = append(found, c)
				}
			}
			if len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// afterwards is how long after a connection what an agent does may still be for that.
const afterwards = int64(500 * time.Millisecond)

// housekeeping learns what an agent changes though nobody has called it for a while, and marks a claim on
// such a change that nothing else speaks for.
func (a *agent) housekeeping(cl *claim, body event.Body) {
	r, is := body.(*event.Request)
	if !is || r.Query() || len(r.Mentions) > 0 {
		return
	}
	if cl != nil {
		cl.Periodic = cl.Attribution.Evidence == model.Candidate && a.habitual(r.Name)
	} else if !slices.ContainsFunc(a.recent, func(c *connection) bool { return r.Start < c.fact.When.End+afterwards }) {
		a.habit(r.Name)
	}
}

// Work finds the call for which an agent runs a program, and returns the process that of is to
// be from now on; nil if it is done for no call.
func (as *Agents) Work(e *event.Exec, of *tree.Process) *active.Process {
	a := as.known[of.Agent.Process]
	if a == nil {
		return nil
	}
	cl := a.attribute(e.Mentions, 0)
	if cl == nil {
		if len(e.Mentions) == 0 {
			a.habit(e.Name)
		}
		return nil
	}
	cl.Periodic = cl.Attribution.Evidence == model.Candidate && a.habitual(e.Name)
	as.tree.Assign(of)
	p := cl.done().Child()
	p.Claim = cl
	return p
}

// Commissioned finds the call for which an agent runs a plugin, by the container in its environment, and
// returns its process in the agent's work; nil if no agent runs it, or no call of that container called one.
func (as *Agents) Commissioned(e *event.Exec, run *tree.Run) *active.Process {
	if run.Agent == nil || as.known[run.Agent.Process] == nil {
		return nil
	}
	var found *connection
	for _, c := range slices.Backward(as.known[run.Agent.Process].named([]string{e.Call.ContainerID})) {
		if c.owner.Op.Kind == model.KindOf(e.Call.Command) {
			found = c
			break
		}
		if found == nil && c.Open { // it undoes what it did for the call
			found = c
		}
	}
	if found == nil {
		return nil
	}
	p := found.work.own.Child()
	p.Claim = &claim{first: found, Attribution: model.Attribution{Evidence: model.Certain}}
	return p
}

// Doing finds the process that stands for what an agent does itself; nil if that is done for no
// call, or if nothing says for which.
func (as *Agents) Doing(by event.Process, body event.Body) *active.Process {
	a := as.known[by]
	if a == nil {
		return nil
	}
	switch b := body.(type) {
	case *event.Enter, *event.Address, *event.Questions, *event.Cut, *event.Configuration, *event.Result:
		return nil // by itself that says nothing
	case *event.Answer: // it is for who asked
		for _, c := range slices.Concat(a.calls, a.recent) {
			for _, w := range []*active.Process{c.work.own, c.work.shared} {
				if w.Op.Closed == "" && active.RefusedBy(w.Current(), b) {
					return w
				}
			}
		}
		return nil
	}
	cl := a.attribute(said(body))
	a.housekeeping(cl, body)
	if cl == nil {
		return nil
	}
	p := cl.done()
	p.Claim = cl
	return p
}

// said returns what something that an agent did can be attributed by: what it mentions, and when it began (0 if
// that says nothing).
func said(body event.Body) (mentions []string, began int64) {
	switch b := body.(type) {
	case *event.Request:
		return b.Mentions, b.Start
	case *event.Setting:
		return b.Mentions, b.Start
	case *event.Mount:
		return nil, b.Start
	case *event.Wait:
		return nil, b.Start
	case *event.Connect:
		return nil, b.Start
	case *event.Exchange:
		if !b.Unasked {
			return nil, b.Start
		}
	}
	return nil, 0
}
