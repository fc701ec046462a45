package active

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

type claim struct {
	first  *connection // its place in the trace; nil if unseen
	others []*connection
	// The work began before all open connections.
	startedBefore bool
	// The agent, if its callers are invisible.
	by *event.Actor
	model.Attribution
}

// attribute finds the calls for work by mentioned containers, or by connections open when it began (0: any).
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
	return a.candidates(found)
}

// overlapping claims work for connections open when it began. Earlier work is for none, but each may have waited for
// it.
func (a *agent) overlapping(began int64) *claim {
	var found []*connection
	for _, c := range a.calls {
		if began == 0 || began >= c.fact.When.Start {
			found = append(found, c)
		}
	}
	switch {
	case len(found) > 0:
		return a.candidates(found)
	case len(a.calls) == 0:
		return nil
	}
	cl := a.candidates(a.calls)
	cl.startedBefore = true
	return cl
}

// candidates returns a claim. Successive claims share the list: an agent may do hundreds of things for hundreds of
// callers.
func (a *agent) candidates(found []*connection) *claim {
	if a.among == nil || !slices.Equal(a.among.found, found) {
		each := eachCall(found)
		a.among = &among{slices.Clone(found), claim{
			first: each[0], others: each[1:],
			Attribution: model.Attribution{Evidence: model.Candidate, Others: keysOf(each[1:])},
		}}
	}
	cl := a.among.claim
	return &cl
}

type among struct {
	found []*connection
	claim claim
}

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

func (cl *claim) standIn() *Process {
	if len(cl.others) > 0 || cl.Periodic {
		return cl.first.work.shared
	}
	return cl.first.work.own
}

func (a *agent) named(containers []string) (found []*connection) {
	for _, vouched := range []bool{true, false} {
		for _, from := range [][]*connection{a.calls, a.recent} {
			for _, c := range from {
				op := c.owner.Op
				if op.Closed == "" && op.Vouched() == vouched && slices.Contains(containers, op.ContainerID) {
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

// afterwards is how long work after a connection may be for it (chosen).
const afterwards = int64(500 * time.Millisecond)

// housekeeping learns what an agent changes without a recent caller, and marks claims on such changes.
func (a *agent) housekeeping(cl *claim, body event.Body) {
	r, is := body.(*event.Request)
	if !is || r.Query() || len(r.Mentions) > 0 {
		return
	}
	if cl != nil {
		cl.Periodic = cl.Evidence == model.Candidate && a.habitual(r.Name)
	} else if !slices.ContainsFunc(a.recent, func(c *connection) bool { return r.Start < c.fact.When.End+afterwards }) {
		a.habit(r.Name)
	}
}

// Work finds the call for which an agent runs a program, and returns the new process, if any.
func (as *Agents) Work(e *event.Exec, of *tree.Process) *Process {
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
	cl.Periodic = cl.Evidence == model.Candidate && a.habitual(e.Name)
	as.tree.Assign(of)
	p := cl.standIn().Child()
	p.claim = cl
	return p
}

// Commissioned is Work for a plugin, by the container in its environment.
func (as *Agents) Commissioned(e *event.Exec, run *tree.Run) *Process {
	if run.Agent == nil || as.known[run.Agent.Process] == nil {
		return nil
	}
	var found *connection
	for _, c := range slices.Backward(as.known[run.Agent.Process].named([]string{e.Call.ContainerID})) {
		if c.owner.Op.Kind == model.KindOf(e.Call.Command) {
			found = c
			break
		}
		if found == nil && c.Open { // it undoes its work for the call
			found = c
		}
	}
	if found == nil {
		return nil
	}
	p := found.work.own.Child()
	p.claim = &claim{first: found, Attribution: model.Attribution{Evidence: model.Certain}}
	return p
}

// Doing returns the stand-in for an agent's own work, if its call is known.
func (as *Agents) Doing(by event.Process, body event.Body) *Process {
	a := as.known[by]
	if a == nil {
		return nil
	}
	switch b := body.(type) {
	case *event.Enter, *event.Address, *event.Questions, *event.Cut, *event.Configuration, *event.Result:
		return nil
	case *event.Answer:
		for _, c := range slices.Concat(a.calls, a.recent) {
			for _, w := range []*Process{c.work.own, c.work.shared} {
				if w.Op.Closed == "" && refusedBy(w.Current(), b) {
					return w
				}
			}
		}
		return nil
	}
	cl := a.attribute(evidence(body))
	a.housekeeping(cl, body)
	if cl == nil {
		return nil
	}
	p := cl.standIn()
	p.claim = cl
	return p
}

// evidence returns the containers that work mentions, and its start, 0 if irrelevant.
func evidence(body event.Body) (mentions []string, began int64) {
	switch b := body.(type) {
	case *event.Request:
		return b.Mentions, b.Start
	case *event.Setting:
		return b.Mentions, b.Start
	case *event.Mount:
		return nil, b.Start
	case *event.Wait:
		return nil, b.Start
	case *event.Missing:
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
