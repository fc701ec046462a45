package timeline

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Work is what a server did while a call had a connection to it. Neither image is a
// process of the call: their children and their insides are what was done.
type Work struct {
	// Own was done for this call: certainly, or as far as is known since it was the only
	// one that had the server's attention.
	Own *Image
	// Shared was done while others called the server, too, or is what the server does all
	// the time: nobody knows for whom. It is drawn at one of the calls.
	Shared *Image
	// CPU is how long the server itself ran (ns), to a tick of 10 ms; Channel what it
	// waited in when it was asked.
	CPU     int64
	Channel string
	// Gone is when the server ended though it was still called; 0 if it did not.
	Gone int64

	agent       *agent
	cpu         int64 // of the server when it was called
	known       bool  // cpu is
	own, shared *process
}

// agent is a server that has connections to runs of open operations.
type agent struct {
	calls  []*Connection // that are open, in order of their start
	recent []*Connection // that were closed lately
	// periodic are the programs it was seen to run while nobody called it.
	periodic map[string]bool
}

// agents are those that runs call, and what they do for calls.
type agents struct {
	limit  int
	tree   *tree.Tree
	losses *losses
	known  map[event.Process]*agent
}

func newAgents(limit int, t *tree.Tree, l *losses) *agents {
	return &agents{limit: limit, tree: t, losses: l, known: map[event.Process]*agent{}}
}

const (
	// recentMax is how many connections to a server are remembered that are closed: what
	// it does at the end of a call may be told after that.
	recentMax = 16
	// periodicMax is how many programs of a server are remembered.
	periodicMax = 64
)

// serve takes that a connection has been answered: from now on what the server does may
// be done for it.
func (as *agents) serve(c *Connection) {
	p := c.owner
	if c.Server == nil || c.Server.Process == "" || p == nil || p.run == nil || p.op.Closed != "" {
		return
	}
	depth := 0
	if caller := as.tree.Get(c.by); caller != nil {
		depth = caller.Depth() + 1
	}
	a := as.agent(c.Server.Process, depth)
	if a == nil || c.Work != nil && c.Work.agent == a {
		return
	}
	if c.Work != nil { // another one listens than accepts
		c.Work.agent.leave(c)
		c.Work.by(a, c.Server)
		as.calls(a, c)
		return
	}
	image := func() *Image {
		return &Image{Program: Program{PID: c.Server.PID, Process: c.Server.Process, Name: c.Server.Name}, Exit: Exit{Ended: true}, Start: c.fact.When.Start, End: c.fact.When.Start}
	}
	c.Work = &Work{agent: a, Own: image(), Shared: image()}
	worker := func(im *Image) *process {
		return &process{op: p.op, up: im, image: im, run: p.run, call: p.call}
	}
	c.Work.own, c.Work.shared = worker(c.Work.Own), worker(c.Work.Shared)
	as.calls(a, c)
}

// calls notes that a server works for a connection.
func (as *agents) calls(a *agent, c *Connection) {
	a.calls = append(a.calls, c)
	as.losses.belongs(c.Server.Process, c.owner.op, c.fact.When.Start)
}

// agent finds or makes the state of an agent of that depth, 0 where it is not known; nil
// beyond the limit.
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

// makeRoom forgets a server that nobody calls, if there are too many.
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

// by makes the work that of another server.
func (w *Work) by(a *agent, server *event.Actor) {
	w.agent, w.known = a, false
	for _, im := range []*Image{w.Own, w.Shared} {
		im.PID, im.Process, im.Name = server.PID, server.Process, server.Name
	}
}

// leave takes a connection from those that are open.
func (a *agent) leave(c *Connection) bool {
	i := slices.Index(a.calls, c)
	if i >= 0 {
		a.calls = slices.Delete(a.calls, i, i+1)
	}
	return i >= 0
}

// served takes the end of a connection.
func (c *Connection) served() {
	if c.Work == nil {
		return
	}
	c.Work.Own.End, c.Work.Shared.End = c.fact.When.End, c.fact.When.End
	a := c.Work.agent
	if a.leave(c) {
		if len(a.recent) >= recentMax {
			a.recent = slices.Delete(a.recent, 0, 1)
		}
		a.recent = append(a.recent, c)
	}
}

// sample applies an agent's CPU and wchan sample.
func (as *agents) sample(b *event.Agent) {
	a := as.known[b.Process]
	if !b.Over {
		a = as.agent(b.Process, 0)
	}
	if a == nil {
		return
	}
	for _, c := range slices.Concat(a.calls, a.recent) {
		w := c.Work
		if !w.known {
			w.cpu, w.known = b.CPU, true
		}
		if c.open || w.CPU == 0 {
			w.CPU = max(0, b.CPU-w.cpu)
		}
		if c.open && b.Channel != "" {
			w.Channel = b.Channel
		}
	}
	if b.Over && len(a.calls) == 0 {
		a.recent = nil
		as.release(b.Process)
	}
}

// gone takes the end of an agent.
func (as *agents) gone(now int64, process event.Process) {
	a := as.known[process]
	as.forget(process)
	for _, c := range slices.Clone(a.calls) { // nobody answers them any more
		c.Work.Gone = now
		c.served()
	}
}

// dismiss forgets what agents did for an operation that is closed, and them, if none is open.
func (as *agents) dismiss(op *operation, idle bool) {
	of := func(c *Connection) bool { return c.Work.own.op == op }
	for key, a := range as.known {
		a.calls, a.recent = slices.DeleteFunc(a.calls, of), slices.DeleteFunc(a.recent, of)
		if idle && len(a.calls) == 0 && len(a.periodic) == 0 {
			as.forget(key)
		}
	}
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
