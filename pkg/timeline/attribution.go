package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/tree"
)

// attribute finds the connection for which the agent did something, by the containers that it
// mentions. others are the calls it may have been done for as well.
func (a *agent) attribute(mentions []string) (c *Connection, evidence Evidence, others []Key) {
	if len(mentions) > 0 {
		found := a.named(mentions)
		switch {
		case len(found) == 0:
			return nil, "", nil
		case len(mentions) == 1:
			return found[len(found)-1], Certain, nil
		}
		return found[0], Candidate, keysOf(found[1:])
	}
	if len(a.calls) == 0 {
		return nil, "", nil
	}
	return a.calls[0], Candidate, keysOf(a.calls[1:])
}

// named lists the connections of the open calls for any of these containers. Calls that the runtime
// stands for go before others that name the same container, open connections before closed ones.
func (a *agent) named(containers []string) (found []*Connection) {
	for _, vouched := range []bool{true, false} {
		for _, from := range [][]*Connection{a.calls, a.recent} {
			for _, c := range from {
				if op := c.Work.own.op; op.Closed == "" && op.vouched() == vouched && slices.Contains(containers, op.ContainerID) {
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

func keysOf(calls []*Connection) (keys []Key) {
	for _, c := range calls {
		if key := c.Work.own.op.keyOf(c.Work.own.call); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// work finds the call for which an agent runs a program, and returns the process that of is to
// be from now on; nil if it is done for no call.
func (as *agents) work(e *event.Exec, of *tree.Process) *process {
	a := as.known[of.Agent.Process]
	if a == nil {
		return nil
	}
	c, evidence, others := a.attribute(e.Mentions)
	if c == nil {
		if len(e.Mentions) == 0 && len(a.periodic) < periodicMax {
			a.periodic[e.Name] = true
		}
		return nil
	}
	periodic := evidence == Candidate && a.periodic[e.Name]
	worker := c.Work.own
	if len(others) > 0 || periodic {
		worker = c.Work.shared
	}
	as.tree.Assign(of)
	p := worker.child()
	p.evidence = &Attribution{Evidence: evidence, Periodic: periodic, Others: others}
	return p
}

// commissioned finds the call for which an agent runs a plugin, by the container in its environment, and
// returns its process in the agent's work; nil if no agent runs it, or no call of that container called one.
func (as *agents) commissioned(e *event.Exec, run *tree.Run) *process {
	if run.Agent == nil || as.known[run.Agent.Process] == nil {
		return nil
	}
	for _, c := range slices.Backward(as.known[run.Agent.Process].named([]string{e.Call.ContainerID})) {
		if c.Work.own.op.Kind == KindOf(e.Call.Command) {
			p := c.Work.own.child()
			p.evidence = &Attribution{Evidence: Certain}
			return p
		}
	}
	return nil
}

// doing finds the process that stands for what an agent does itself; nil if that is done for no
// call, or if nothing says for which.
func (as *agents) doing(by event.Process, body event.Body) *process {
	a := as.known[by]
	if a == nil {
		return nil
	}
	var mentions []string
	switch b := body.(type) {
	case *event.Request:
		mentions = b.Mentions
	case *event.Setting:
		mentions = b.Mentions
	case *event.Enter, *event.Address, *event.Cut, *event.Link, *event.Configuration, *event.Result:
		return nil // by itself that says nothing
	case *event.Answer: // it is for who asked
		for _, c := range slices.Concat(a.calls, a.recent) {
			for _, w := range []*process{c.Work.own, c.Work.shared} {
				if w.op.Closed == "" && w.image.refusedBy(b) {
					return w
				}
			}
		}
		return nil
	}
	c, evidence, others := a.attribute(mentions)
	if c == nil {
		return nil
	}
	p := c.Work.own
	if len(others) > 0 {
		p = c.Work.shared
	}
	p.doing = &Attribution{Evidence: evidence, Others: others}
	return p
}
