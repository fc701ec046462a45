// Package agents attributes what agents do to the calls that wait for them: daemons that plugins connect to, and those
// that these ask in turn. It follows their connections, the exchanges on them, and what the agents run and change.
package agents

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// work is what an agent does while a connection to it is open.
type work struct {
	*model.Work
	of          *connection
	agent       *agent
	cpu         int64           // of the agent when the connection began
	known       bool            // cpu is
	depth       int             // how many agents are between a run and what is done
	own, shared *active.Process // stand for the agent itself
	below       []*work         // of the agents that this one connects to
}

type agent struct {
	calls  []*connection // open ones, in order of their start
	recent []*connection // the last recentMax that were closed
	// periodic are the programs that it ran while it had no connection, and what it then asked of the
	// kernel: by 15 letters of the name, which is what the kernel keeps.
	periodic map[string]bool
	// hidden: who calls it is not seen. who it is then.
	hidden bool
	who    event.Actor
	spells spells
	deeds  []deed
	among  *among // the latest claim on several connections
}

// Agents are those that runs call, and what they do for calls.
type Agents struct {
	limit int
	tree  *tree.Tree
	// belongs says that what an agent does since then may be for an operation.
	belongs func(agent event.Process, op *active.Operation, since int64)
	known   map[event.Process]*agent
	// departed are the last that ended.
	departed departed
}

// New returns no agents, and has room for as many as said, in a tree of processes. belongs is told for which
// operation an agent may work, and since when.
func New(limit int, t *tree.Tree, belongs func(event.Process, *active.Operation, int64)) *Agents {
	return &Agents{limit: limit, tree: t, belongs: belongs, known: map[event.Process]*agent{}}
}

// Known reports whether a process is an agent.
func (as *Agents) Known(p event.Process) bool { return as.known[p] != nil }

const (
	// recentMax bounds the closed connections that an agent's work is still attributed to: what
	// it does at the end of one may be read after the close.
	recentMax = 16
	// nestedMax bounds the agents behind each other: two that wait for one another have no end.
	nestedMax = 8
	// periodicMax bounds agent.periodic.
	periodicMax = 64
)

// serve records that a connection was answered: from now on the agent's work may be for it.
func (as *Agents) serve(c *connection) {
	p := c.owner
	if c.Agent == nil || c.Agent.Process == "" || p.Op.Closed != "" || depth(p) >= nestedMax || c.Agent.Process == c.by {
		return
	}
	below := 0
	if caller := as.tree.Get(c.by); caller != nil {
		below = caller.Depth() + 1
	}
	a := as.agent(c.Agent.Process, below)
	if a == nil || c.work != nil && c.work.agent == a {
		return
	}
	as.departed.succeed(c)
	if c.work != nil { // another one listens than accepts
		c.work.agent.leave(c)
		c.work.by(a, c.Agent)
		as.calls(a, c)
		return
	}
	image := func() *model.Image {
		return &model.Image{Program: model.Program{PID: c.Agent.PID, Process: c.Agent.Process, Name: c.Agent.Name}, Exit: model.Exit{Ended: true}, Start: c.fact.When.Start, End: c.fact.When.Start}
	}
	w := &work{Work: &model.Work{Own: image(), Shared: image()}, of: c, agent: a, depth: depth(p) + 1}
	w.own, w.shared = p.StandIn(w.Own, w), p.StandIn(w.Shared, w)
	c.Work, c.work = w.Work, w
	p.Op.Works = append(p.Op.Works, w)
	if above, is := p.Work.(*work); is {
		above.below = append(above.below, w)
	}
	as.calls(a, c)
}

func (as *Agents) calls(a *agent, c *connection) {
	a.calls = append(a.calls, c)
	as.belongs(c.Agent.Process, c.owner.Op, c.fact.When.Start)
}

// agent finds or makes the state of an agent of that depth, 0 where it is not known; nil beyond the limit.
func (as *Agents) agent(process event.Process, depth int) *agent {
	a := as.known[process]
	if a == nil && as.makeRoom() {
		a = &agent{periodic: map[string]bool{}}
		as.known[process] = a
	}
	if a != nil && (depth > 0 || as.tree.Agent(process) == nil) {
		as.tree.Serve(process, max(1, depth))
	}
	return a
}

// makeRoom forgets an agent without connections, if there are too many. It reports whether there
// is room for one more.
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

// release forgets what an agent started for no call.
func (as *Agents) release(key event.Process) {
	if a := as.tree.Agent(key); a != nil {
		as.tree.Dismiss(a)
	}
}

// by makes the work that of another agent.
func (w *work) by(a *agent, who *event.Actor) {
	w.agent, w.known = a, false
	for _, im := range []*model.Image{w.Own, w.Shared} {
		im.PID, im.Process, im.Name = who.PID, who.Process, who.Name
	}
}

// works reports whether an agent still does what p stands for, or nothing for anybody else.
func (as *Agents) works(process event.Process, p *active.Process) bool {
	a := as.known[process]
	return a == nil || len(a.calls) == 0 || slices.ContainsFunc(a.calls, func(c *connection) bool {
		return c.work.own == p || c.work.shared == p
	})
}

// leave removes c from the open connections, and reports whether it was one.
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
		if len(a.recent) >= recentMax {
			a.recent = slices.Delete(a.recent, 0, 1)
		}
		a.recent = append(a.recent, c)
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
		a = as.agent(b.Process, 0)
	}
	if a == nil {
		return
	}
	if b.Hidden {
		a.hidden, a.who = true, event.Actor{Process: b.Process, PID: b.PID, Name: b.Name}
	}
	a.spells.sample(now, b)
	for _, program := range b.Programs {
		a.habit(program)
	}
	for _, c := range slices.Concat(a.calls, a.recent) {
		w := c.work
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

// killed records what killed an agent, which may be told before its end or after it.
func (a *agent) killed(by string) {
	for _, c := range slices.Concat(a.calls, a.recent) {
		if by != "" && (c.Open || c.Work.Gone != 0) {
			c.Work.Killed = by
		}
	}
}

// habit notes what the agent does while it has no connection, and habitual reports whether it did.
func (a *agent) habit(name string) {
	if len(a.periodic) < periodicMax {
		a.periodic[name[:min(len(name), 15)]] = true
	}
}

// habitual is described at habit.
func (a *agent) habitual(name string) bool { return a.periodic[name[:min(len(name), 15)]] }

// Gone ends the connections of an agent that has exited.
func (as *Agents) Gone(now int64, process event.Process) {
	a := as.known[process]
	as.forget(process)
	for _, c := range slices.Clone(a.calls) { // served removes from a.calls
		c.Work.Gone = now
		if c.Exchange != nil { // it answers no more
			c.hangUp(now)
		}
		c.served()
	}
	as.departed.add(process, a)
}

// depth is how many agents are between p and a run.
func depth(p *active.Process) int {
	if w, is := p.Work.(*work); is {
		return w.depth
	}
	return 0
}

// Images returns what stands for the agent itself.
func (w *work) Images() (own, shared *model.Image) { return w.Own, w.Shared }

// Close ends what agents do for an operation that is over: first their connections, then what is known of them only
// by then. idle: no other operation is open.
func (as *Agents) Close(op *active.Operation, now int64, idle bool) {
	for _, w := range op.Works {
		w := w.(*work)
		w.own.Disconnect(now)
		w.shared.Disconnect(now)
	}
	for _, w := range op.Works {
		w.(*work).know(now)
	}
	as.dismiss(op, idle)
}

// dismiss forgets what agents did for an operation that is closed, and them, if none is open.
func (as *Agents) dismiss(op *active.Operation, idle bool) {
	of := func(c *connection) bool { return c.owner.Op == op }
	for key, a := range as.known {
		a.calls, a.recent, a.among = slices.DeleteFunc(a.calls, of), slices.DeleteFunc(a.recent, of), nil
		if idle && len(a.calls) == 0 && len(a.periodic) == 0 && !a.hidden {
			as.forget(key)
		}
	}
	as.departed.dismiss(of)
}

// Called lists the operations whose calls an agent answers.
func (as *Agents) Called(process event.Process) (ops []*active.Operation) {
	if a := as.known[process]; a != nil {
		for _, c := range a.calls {
			if !slices.Contains(ops, c.owner.Op) {
				ops = append(ops, c.owner.Op)
			}
		}
	}
	return ops
}

// Hidden reports whether a process belongs to an agent whose callers are invisible.
func (as *Agents) Hidden(p *tree.Process) bool {
	if p.Agent == nil {
		return false
	}
	a := as.known[p.Agent.Process]
	return a != nil && a.hidden && len(a.calls)+len(a.recent) == 0
}

// HiddenWork finds the call for which such an agent runs a program, and returns the process that of is to be from
// now on: by what it mentions the call in progress for that sandbox, below the plugin that runs; without a mention
// perhaps any that is. It returns nil if none is in progress, and in any case the agent.
func (as *Agents) HiddenWork(e *event.Exec, of *tree.Process, open []*active.Operation) (*active.Process, *event.Actor) {
	who := as.known[of.Agent.Process].who
	ops := servedNow(open, e.Mentions)
	if len(ops) == 0 {
		return nil, &who
	}
	cl := &claim{by: &who, Attribution: model.Attribution{Evidence: model.Certain}}
	if len(e.Mentions) != 1 {
		cl.Attribution.Evidence = model.Candidate
		for _, op := range ops[1:] {
			cl.Others = append(cl.Others, op.KeyOf(served(op)))
		}
	}
	as.tree.Assign(of)
	call := served(ops[0])
	return ops[0].Below(call, call.Live(), cl), &who
}

// servedNow lists the operations of which a plugin runs: those of these containers, or all where none is named. What
// the runtime stands for goes before others that name the same container.
func servedNow(open []*active.Operation, containers []string) (ops []*active.Operation) {
	for _, vouched := range []bool{true, false} {
		for _, op := range open {
			if op.Vouched() == vouched && served(op) != nil && (len(containers) == 0 || slices.Contains(containers, op.ContainerID)) {
				ops = append(ops, op)
			}
		}
		if len(ops) > 0 && len(containers) > 0 {
			return ops
		}
	}
	return ops
}

// served is the call of op that an agent may work for: one of which a plugin runs, and of several not that of lo;
// nil if none does.
func served(op *active.Operation) (found *model.Call) {
	for _, call := range op.Calls {
		if call.Live() != nil && (found == nil || found.IfName == "lo") {
			found = call
		}
	}
	return found
}
