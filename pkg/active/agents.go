package active

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

type work struct {
	*model.Work
	of          *connection
	agent       *agent
	cpu         int64 // CPU time at the connection's start
	known       bool
	sought      bool
	depth       int      // agents between a run and the work
	own, shared *Process // stand-ins
	below       []*work  // work of called agents
}

type agent struct {
	calls  []*connection // by start
	recent []*connection // up to recentMax closed ones
	// Programs and requests outside of connections, by 15 letters (all that the kernel stores).
	periodic map[string]bool
	hidden   bool // its callers are invisible
	identity event.Actor
	spells   spells
	deeds    []deed
	among    *among // latest claim for several connections
}

// Agents are the agents of runs, and their work for calls.
type Agents struct {
	limit int
	tree  *tree.Tree
	// belongs notes that an agent's events since then may be for an operation.
	belongs  func(agent event.Process, op *Operation, since int64)
	known    map[event.Process]*agent
	departed departed
}

// NewAgents returns an empty set for limit agents; see Agents.belongs.
func NewAgents(limit int, t *tree.Tree, belongs func(event.Process, *Operation, int64)) *Agents {
	return &Agents{limit: limit, tree: t, belongs: belongs, known: map[event.Process]*agent{}}
}

// Known reports whether a process is an agent.
func (as *Agents) Known(p event.Process) bool { return as.known[p] != nil }

const (
	// recentMax bounds an agent's closed connections, whose last work may be read later.
	recentMax = 16
	// nestedMax bounds the depth of agents that call each other endlessly.
	nestedMax   = 8
	periodicMax = 64
)

func (as *Agents) serve(c *connection) {
	p := c.owner
	if c.Agent == nil || c.Agent.Process == "" || p.Op.Closed != "" || depth(p) >= nestedMax || c.Agent.Process == c.by {
		return
	}
	a := as.agent(c.Agent.Process)
	if a == nil || c.work != nil && c.work.agent == a {
		return
	}
	as.departed.succeed(c)
	if c.work != nil { // listener and accepting process differ
		c.work.agent.leave(c)
		c.work.by(a, c.Agent)
		as.calls(a, c)
		return
	}
	image := func() *model.Image {
		return &model.Image{
			Program: model.Program{PID: c.Agent.PID, Process: c.Agent.Process, Name: c.Agent.Name},
			Exit:    model.Exit{Ended: true}, Start: c.fact.When.Start, End: c.fact.When.Start,
		}
	}
	w := &work{Work: &model.Work{Own: image(), Shared: image()}, of: c, agent: a, depth: depth(p) + 1}
	w.own, w.shared = p.standIn(w.Own, w), p.standIn(w.Shared, w)
	c.Work, c.work = w.Work, w
	p.Op.works = append(p.Op.works, w)
	if above := p.work; above != nil {
		above.below = append(above.below, w)
	}
	as.calls(a, c)
}

func (as *Agents) calls(a *agent, c *connection) {
	a.calls = append(a.calls, c)
	as.belongs(c.Agent.Process, c.owner.Op, c.fact.When.Start)
}

func (as *Agents) agent(process event.Process) *agent {
	a := as.known[process]
	if a == nil && as.makeRoom() {
		a = &agent{periodic: map[string]bool{}}
		as.known[process] = a
	}
	if a != nil {
		as.tree.Serve(process, 1)
	}
	return a
}

func (as *Agents) makeRoom() bool {
	if len(as.known) < as.limit {
		return true
	}
	for _, key := range slices.Sorted(maps.Keys(as.known)) {
		if a := as.known[key]; len(a.calls) == 0 {
			as.forget(key)
			return true
		}
	}
	return false
}

func (as *Agents) forget(key event.Process) {
	delete(as.known, key)
	as.release(key)
}

func (as *Agents) release(key event.Process) {
	if a := as.tree.Agent(key); a != nil {
		as.tree.Dismiss(a)
	}
}

func (w *work) by(a *agent, who *event.Actor) {
	w.agent, w.known = a, false
	for _, im := range []*model.Image{w.Own, w.Shared} {
		im.PID, im.Process, im.Name = who.PID, who.Process, who.Name
	}
}

// works reports whether an agent works for p; true for idle agents and other processes.
func (as *Agents) works(process event.Process, p *Process) bool {
	a := as.known[process]
	return a == nil || len(a.calls) == 0 || slices.ContainsFunc(a.calls, func(c *connection) bool {
		return c.work.own == p || c.work.shared == p
	})
}

func (a *agent) leave(c *connection) bool {
	i := slices.Index(a.calls, c)
	if i >= 0 {
		a.calls = slices.Delete(a.calls, i, i+1)
	}
	return i >= 0
}

func (c *connection) served() {
	if c.work == nil {
		return
	}
	c.Work.Own.End, c.Work.Shared.End = c.fact.When.End, c.fact.When.End
	a := c.work.agent
	if a.leave(c) {
		a.recent = model.Latest(a.recent, recentMax, c)
	}
}

// Sample applies a sample of an agent.
func (as *Agents) Sample(now int64, b *event.Agent) {
	a := as.known[b.Process]
	if gone := as.departed.of(b.Process); a == nil && gone != nil {
		gone.killed(b.Killed)
		return
	}
	if a == nil && !b.Over {
		a = as.agent(b.Process)
	}
	if a == nil {
		return
	}
	if b.Hidden {
		a.hidden, a.identity = true, event.Actor{Process: b.Process, PID: b.PID, Name: b.Name}
	}
	if b.Sought {
		a.seek(b.Socket)
		return
	}
	a.spells.sample(now, b)
	for _, program := range b.Programs {
		a.habit(program)
	}
	a.sampled(b)
	a.killed(b.Killed)
	if b.Over && len(a.calls) == 0 {
		a.recent = nil
		as.release(b.Process)
		if a.hidden {
			as.forget(b.Process)
		}
	}
	if b.Over {
		a.hidden = false
	}
}

func (a *agent) sampled(b *event.Agent) {
	for _, c := range slices.Concat(a.calls, a.recent) {
		w := c.work
		if b.Socket != "" && c.socket == b.Socket {
			w.Stack, w.Perhaps, w.sought = b.Stack, b.Shared, false
		}
		if !w.known {
			w.cpu, w.known = b.CPU, true
		}
		if c.Open || w.CPU == 0 {
			w.CPU = max(0, b.CPU-w.cpu)
		}
		if c.Open && b.Channel != "" && b.State == "" {
			w.Channel = b.Channel
		}
	}
}

func (a *agent) seek(socket string) {
	for _, c := range slices.Concat(a.calls, a.recent) {
		c.work.sought = c.work.sought || c.socket == socket
	}
}

func (a *agent) killed(by string) {
	for _, c := range slices.Concat(a.calls, a.recent) {
		if by != "" && (c.Open || c.Work.Gone != 0) {
			c.Work.Killed = by
		}
	}
}

func (a *agent) habit(name string) {
	if len(a.periodic) < periodicMax {
		a.periodic[name[:min(len(name), 15)]] = true
	}
}

func (a *agent) habitual(name string) bool { return a.periodic[name[:min(len(name), 15)]] }

// Gone ends the connections of an exited agent.
func (as *Agents) Gone(now int64, process event.Process) {
	a := as.known[process]
	as.forget(process)
	for _, c := range slices.Clone(a.calls) { // served removes from a.calls
		c.Work.Gone = now
		if c.Exchange != nil {
			c.hangUp(now)
		}
		c.served()
	}
	as.departed.add(process, a)
}

func depth(p *Process) int {
	if p.work != nil {
		return p.work.depth
	}
	return 0
}

// Sought reports whether an agent's function is still looked for.
func (as *Agents) Sought(op *Operation) bool {
	return slices.ContainsFunc(op.works, func(w *work) bool {
		a := as.known[w.Own.Process]
		return w.sought && a != nil && slices.Contains(slices.Concat(a.calls, a.recent), w.of)
	})
}

// Close completes agents' work for an operation. idle means that none is open.
func (as *Agents) Close(op *Operation, now int64, idle bool) {
	for _, w := range op.works {
		w.own.Disconnect(now)
		w.shared.Disconnect(now)
	}
	for _, w := range op.works {
		w.know(now)
	}
	of := func(c *connection) bool { return c.owner.Op == op }
	for key, a := range as.known {
		a.calls, a.recent, a.among = slices.DeleteFunc(a.calls, of), slices.DeleteFunc(a.recent, of), nil
		if idle && len(a.calls) == 0 && len(a.periodic) == 0 && !a.hidden {
			as.forget(key)
		}
	}
	as.departed.dismiss(of)
}

// Called lists the operations that wait for an agent.
func (as *Agents) Called(process event.Process) (ops []*Operation) {
	if a := as.known[process]; a != nil {
		for _, c := range a.calls {
			if !slices.Contains(ops, c.owner.Op) {
				ops = append(ops, c.owner.Op)
			}
		}
	}
	return ops
}

// Hidden reports whether a process belongs to an agent with invisible callers.
func (as *Agents) Hidden(p *tree.Process) bool {
	if p.Agent == nil {
		return false
	}
	a := as.known[p.Agent.Process]
	return a != nil && a.hidden && len(a.calls)+len(a.recent) == 0
}

// HiddenWork finds the call for which an agent with invisible callers runs a program. It returns the process, nil
// without a call, and the agent.
func (as *Agents) HiddenWork(e *event.Exec, of *tree.Process, open []*Operation) (*Process, *event.Actor) {
	who := as.known[of.Agent.Process].identity
	ops := servedNow(open, e.Mentions)
	if len(ops) == 0 {
		return nil, &who
	}
	as.tree.Assign(of)
	call := served(ops[0])
	p := ops[0].Below(call, call.Live(), &who)
	if len(e.Mentions) != 1 {
		p.claim.Evidence = model.Candidate
		for _, op := range ops[1:] {
			p.claim.Others = append(p.claim.Others, op.KeyOf(served(op)))
		}
	}
	return p, &who
}

// servedNow returns running operations, of the given containers, if any; vouched ones first.
func servedNow(open []*Operation, containers []string) (ops []*Operation) {
	for _, vouched := range []bool{true, false} {
		for _, op := range open {
			if op.Vouched() == vouched && served(op) != nil &&
				(len(containers) == 0 || slices.Contains(containers, op.ContainerID)) {
				ops = append(ops, op)
			}
		}
		if len(ops) > 0 && len(containers) > 0 {
			return ops
		}
	}
	return ops
}

// served returns a running call of op, preferably not of lo.
func served(op *Operation) (found *model.Call) {
	for _, call := range op.Calls {
		if call.Live() != nil && (found == nil || found.IfName == "lo") {
			found = call
		}
	}
	return found
}
