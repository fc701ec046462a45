package timeline

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
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

const (
	// recentMax is how many connections to a server are remembered that are closed: what
	// it does at the end of a call may be told after that.
	recentMax = 16
	// periodicMax is how many programs of a server are remembered.
	periodicMax = 64
)

// serving takes that a connection has been answered: from now on what the server does may
// be done for it.
func (t *Timeline) serving(c *Connection) {
	p := c.owner
	if c.Server == nil || c.Server.Process == "" || p == nil || p.run == nil || p.op.Closed != "" {
		return
	}
	depth := 0
	if caller := t.tree.Get(c.by); caller != nil {
		depth = caller.Depth() + 1
	}
	a := t.agent(c.Server.Process, depth)
	if a == nil || c.Work != nil && c.Work.agent == a {
		return
	}
	if c.Work != nil { // another one listens than accepts
		c.Work.agent.leave(c)
		c.Work.serve(a, c.Server)
		t.calls(a, c)
		return
	}
	image := func() *Image {
		return &Image{PID: c.Server.PID, Process: c.Server.Process, Name: c.Server.Name, Start: c.fact.When.Start, End: c.fact.When.Start, Ended: true}
	}
	c.Work = &Work{agent: a, Own: image(), Shared: image()}
	worker := func(im *Image) *process {
		return &process{op: p.op, up: im, image: im, run: p.run, call: p.call}
	}
	c.Work.own, c.Work.shared = worker(c.Work.Own), worker(c.Work.Shared)
	t.calls(a, c)
}

// calls notes that a server works for a connection.
func (t *Timeline) calls(a *agent, c *Connection) {
	a.calls = append(a.calls, c)
	t.belongs(c.Server.Process, c.owner.op, c.fact.When.Start)
}

// agent finds or makes the state of an agent of that depth, 0 where it is not known; nil
// beyond the limit.
func (t *Timeline) agent(process event.Process, depth int) *agent {
	a := t.agents[process]
	if a == nil && t.makeRoomForAgent() {
		a = &agent{periodic: map[string]bool{}}
		t.agents[process] = a
	}
	if a != nil && (depth > 0 || t.tree.Agent(process) == nil) {
		t.tree.Serve(process, max(1, depth))
	}
	return a
}

// makeRoomForAgent forgets a server that nobody calls, if there are too many.
func (t *Timeline) makeRoomForAgent() bool {
	if len(t.agents) < t.options.Operations {
		return true
	}
	for _, key := range slices.Sorted(maps.Keys(t.agents)) {
		if a := t.agents[key]; len(a.calls) == 0 {
			t.forgetAgent(key)
			return true
		}
	}
	return false
}

func (t *Timeline) forgetAgent(key event.Process) {
	delete(t.agents, key)
	t.dismissTree(key)
}

// dismissTree forgets what an agent started for nobody.
func (t *Timeline) dismissTree(key event.Process) {
	if a := t.tree.Agent(key); a != nil {
		t.tree.Dismiss(a)
	}
}

// serve makes the work that of another server.
func (w *Work) serve(a *agent, server *event.Actor) {
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

// agentState takes how a server does.
func (t *Timeline) agentState(b *event.Agent) {
	a := t.agents[b.Process]
	if !b.Over {
		a = t.agent(b.Process, 0)
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
		t.dismissTree(b.Process)
	}
}

// gone takes the end of an agent.
func (t *Timeline) gone(now int64, process event.Process, a *agent) {
	t.forgetAgent(process)
	for _, c := range slices.Clone(a.calls) { // nobody answers them any more
		c.Work.Gone = now
		c.served()
	}
}

// dismiss forgets what servers did for an operation that is closed.
func (t *Timeline) dismiss(op *operation) {
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			run.Walk(func(im *Image) {
				im.works(func(w *Work) {
					t.disconnect(w.own, t.now)
					t.disconnect(w.shared, t.now)
				})
			})
		}
	}
	of := func(c *Connection) bool { return c.Work.own.op == op }
	for key, a := range t.agents {
		a.calls, a.recent = slices.DeleteFunc(a.calls, of), slices.DeleteFunc(a.recent, of)
		if len(t.open) == 0 && len(a.calls) == 0 && len(a.periodic) == 0 {
			t.forgetAgent(key)
		}
	}
}
