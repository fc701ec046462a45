package timeline

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// work is what an agent does while a connection to it is open.
type work struct {
	*model.Work
	of          *connection
	agent       *agent
	cpu         int64 // of the agent when the connection began
	known       bool  // cpu is
	depth       int   // how many agents are between a run and what is done
	own, shared *process
	below       []*work // of the agents that this one connects to
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

// agents are those that runs call, and what they do for calls.
type agents struct {
	limit  int
	tree   *tree.Tree
	losses *losses
	known  map[event.Process]*agent
	// departed are the last that ended.
	departed departed
}

func newAgents(limit int, t *tree.Tree, l *losses) *agents {
	return &agents{limit: limit, tree: t, losses: l, known: map[event.Process]*agent{}}
}

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
func (as *agents) serve(c *connection) {
	p := c.owner
	if c.Agent == nil || c.Agent.Process == "" || p.op.Closed != "" || p.nested() >= nestedMax || c.Agent.Process == c.by {
		return
	}
	depth := 0
	if caller := as.tree.Get(c.by); caller != nil {
		depth = caller.Depth() + 1
	}
	a := as.agent(c.Agent.Process, depth)
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
	w := &work{Work: &model.Work{Own: image(), Shared: image()}, of: c, agent: a, depth: p.nested() + 1}
	worker := func(im *model.Image) *process {
		return &process{op: p.op, up: im, image: im, run: p.run, call: p.call, work: w}
	}
	w.own, w.shared = worker(w.Own), worker(w.Shared)
	c.Work, c.work = w.Work, w
	p.op.works = append(p.op.works, w)
	if p.work != nil {
		p.work.below = append(p.work.below, w)
	}
	as.calls(a, c)
}

func (as *agents) calls(a *agent, c *connection) {
	a.calls = append(a.calls, c)
	as.losses.belongs(c.Agent.Process, c.owner.op, c.fact.When.Start)
}

// agent finds or makes the state of an agent of that depth, 0 where it is not known; nil beyond the limit.
func (as *agents) agent(process event.Process, depth int) *agent {
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
func (as *agents) makeRoom() bool {
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

func (as *agents) forget(key event.Process) {
	delete(as.known, key)
	as.release(key)
}

// release forgets what an agent started for nobody.
func (as *agents) release(key event.Process) {
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
func (as *agents) works(process event.Process, p *process) bool {
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

// sample applies a sample of an agent.
func (as *agents) sample(now int64, b *event.Agent) {
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

// gone ends the connections of an agent that has exited.
func (as *agents) gone(now int64, process event.Process) {
	a := as.known[process]
	as.forget(process)
	for _, c := range slices.Clone(a.calls) { // served removes from a.calls
		c.Work.Gone = now
		c.served()
	}
	as.departed.add(process, a)
}

// dismiss forgets what agents did for an operation that is closed, and them, if none is open.
func (as *agents) dismiss(op *operation, idle bool) {
	of := func(c *connection) bool { return c.owner.op == op }
	for key, a := range as.known {
		a.calls, a.recent, a.among = slices.DeleteFunc(a.calls, of), slices.DeleteFunc(a.recent, of), nil
		if idle && len(a.calls) == 0 && len(a.periodic) == 0 && !a.hidden {
			as.forget(key)
		}
	}
	as.departed.dismiss(of)
}

// called lists the operations whose calls an agent answers.
func (as *agents) called(process event.Process) (ops []*operation) {
	if a := as.known[process]; a != nil {
		for _, c := range a.calls {
			if !slices.Contains(ops, c.owner.op) {
				ops = append(ops, c.owner.op)
			}
		}
	}
	return ops
}
