// Package tree decides the role of each process: the leader of a plugin run, or part of a delegated plugin, a command
// or an agent. It is pure and bounded.
//
// Apply gets each Fork, Exec and Exit, in order. The probe and the timeline each have a Tree:
//
//   - The probe reads standard input and output of Process.Run.Leader. Remove replaces an exit that will not come.
//   - The timeline puts an image of each Exec below the Step's run, image, or agent's connection.
package tree

import "github.com/cniscope/cniscope/pkg/event"

// Tree is the set of followed processes. It is not safe for concurrent use.
type Tree struct {
	limit     int
	processes map[event.Process]*Process
	agents    map[event.Process]*Agent
	inRuns    int
	ofAgents  int
}

// New returns an empty tree for limit processes in runs, and as many outside.
func New(limit int) *Tree {
	return &Tree{limit: limit, processes: map[event.Process]*Process{}, agents: map[event.Process]*Agent{}}
}

// Process has either a Run or an Agent.
type Process struct {
	Key event.Process
	// The innermost run, which may be over.
	Run *Run
	// The agent itself, or its starter outside of a run.
	Agent *Agent
	// Set by Tree.Assign, also for descendants.
	Worker bool
	// At the fork, the parent's.
	Stack  []event.Frame
	Thread *event.ThreadSpan
	Kept   any
}

// Leads reports whether p is its run's plugin process.
func (p *Process) Leads() bool { return p.Run != nil && p.Run.Leader == p.Key }

// Depth counts the agents between p and a run, 0 in a run.
func (p *Process) Depth() int {
	if p.Run != nil {
		return 0
	}
	return p.Agent.Depth
}

// Run is a plugin's process tree, until its last process exits.
type Run struct {
	Leader event.Process
	// Standard input of its current image.
	Stdin string
	// The call and, as Home, the network namespace at the start.
	Call *event.Call
	Home event.Namespace
	// Around delegated to this run; Agent started it.
	Around *Run
	Agent  *Agent

	caller    event.Caller
	nested    int
	processes map[event.Process]*Process
	inner     map[*Run]struct{}
}

// maxNested bounds nested runs: plugins nest two or three deep.
const maxNested = 32

// framesMax is as in the probe; a recording may have more.
const framesMax = 8

// Vouched reports whether the runtime, or an agent of a plugin, started the run.
func (r *Run) Vouched() bool {
	for r.Around != nil {
		r = r.Around
	}
	return r.caller.Anchored() || r.caller == event.CallerAgent
}

// Agent is a process that answers plugins.
type Agent struct {
	Process event.Process
	// 1 if a run calls it, 2 if such an agent does.
	Depth int

	processes map[event.Process]*Process
}

// Role is an event's effect on a process.
type Role int

// The roles.
const (
	Unknown Role = iota
	// the tree is full; Step.Process is the parent, if any
	Refused
	// without an exec so far
	Forked
	// leader of an outermost run
	Root
	// leader of an inner run
	Delegate
	// a leader's next image
	Image
	// another program in a run
	Command
	// an exec of an agent or its child
	Work
	Exited
)

// Step is the result of an event.
type Step struct {
	Role    Role
	Process *Process
	Parent  *Process
	// Its fork was lost.
	New bool
}

// Apply applies a Fork, Exec or Exit; others are Unknown.
func (t *Tree) Apply(body event.Body) Step {
	switch b := body.(type) {
	case *event.Fork:
		step := t.fork(b.Process, b.Parent)
		if step.Role == Forked {
			step.Process.Stack, step.Process.Thread = b.Stack[:min(len(b.Stack), framesMax)], b.Thread
		}
		return step
	case *event.Exec:
		return t.exec(b)
	case *event.Exit:
		p := t.processes[b.Process]
		if p == nil {
			return Step{}
		}
		t.Remove(b.Process)
		return Step{Role: Exited, Process: p}
	}
	return Step{}
}

// Get returns a followed process, or nil.
func (t *Tree) Get(process event.Process) *Process { return t.processes[process] }

// Len counts the followed processes.
func (t *Tree) Len() int { return len(t.processes) }

// Each calls f for every process, in no order.
func (t *Tree) Each(f func(*Process)) {
	for _, p := range t.processes {
		f(p)
	}
}

func (t *Tree) fork(process, parent event.Process) Step {
	up := t.processes[parent]
	if up == nil || t.processes[process] != nil {
		return Step{}
	}
	p := t.add(&Process{Key: process, Run: up.Run, Agent: up.Agent, Worker: up.Worker})
	if p == nil {
		return Step{Role: Refused, Process: up}
	}
	return Step{Role: Forked, Process: p, Parent: up}
}

func (t *Tree) exec(e *event.Exec) Step {
	p, isNew := t.processes[e.Process], false
	if p == nil {
		up := t.processes[e.Parent]
		switch {
		case e.Root && e.Call != nil:
			return t.root(e, up)
		case up == nil:
			return Step{}
		}
		forked := t.fork(e.Process, e.Parent)
		if forked.Role == Refused {
			return forked
		}
		p, isNew = forked.Process, true
	}
	switch {
	case p.Run == nil && e.Root && e.Call != nil:
		t.Remove(p.Key)
		step := t.root(e, p)
		if step.Role == Root {
			step.Process.Kept, step.Process.Stack, step.Process.Thread = p.Kept, p.Stack, p.Thread
		}
		return step
	case p.Run == nil:
		return Step{Role: Work, Process: p, New: isNew}
	case p.Leads():
		p.Run.Stdin = e.Stdin
		return Step{Role: Image, Process: p, New: isNew}
	case delegates(e, p.Run):
		around := p.Run
		t.Remove(p.Key)
		p.Run = begin(e, around, nil)
		t.add(p)
		return Step{Role: Delegate, Process: p, New: isNew}
	}
	return Step{Role: Command, Process: p, New: isNew}
}

// delegates recognizes a delegated plugin by CNI_PATH and its own standard input: commands may inherit a plugin's
// environment.
func delegates(e *event.Exec, in *Run) bool {
	return in.nested < maxNested && e.InPath && e.Call != nil &&
		e.Stdin != event.NoStdin && (e.Stdin != in.Stdin || e.Stdin == "")
}

// root begins an outermost run. up (or nil) started the run or becomes it.
func (t *Tree) root(e *event.Exec, up *Process) Step {
	var agent *Agent
	if up != nil && up.Run == nil {
		agent = up.Agent
	}
	p := t.add(&Process{Key: e.Process, Run: begin(e, nil, agent)})
	if p == nil {
		return Step{Role: Refused}
	}
	return Step{Role: Root, Process: p, New: true}
}

func begin(e *event.Exec, around *Run, agent *Agent) *Run {
	r := &Run{
		Leader: e.Process, Stdin: e.Stdin, Call: e.Call, Home: e.NetNS, Around: around, Agent: agent, caller: e.Caller,
		processes: map[event.Process]*Process{}, inner: map[*Run]struct{}{},
	}
	if around != nil {
		r.nested = around.nested + 1
		around.inner[r] = struct{}{}
	}
	return r
}

func (t *Tree) add(p *Process) *Process {
	owned, n := t.owner(p)
	if *n >= t.limit {
		return nil
	}
	*n++
	owned[p.Key] = p
	t.processes[p.Key] = p
	return p
}

func (t *Tree) owner(p *Process) (map[event.Process]*Process, *int) {
	if p.Run != nil {
		return p.Run.processes, &t.inRuns
	}
	return p.Agent.processes, &t.ofAgents
}

// Remove drops a process.
func (t *Tree) Remove(process event.Process) {
	p := t.processes[process]
	if p == nil {
		return
	}
	if a := t.agents[process]; a != nil {
		t.Dismiss(a)
		if p = t.processes[process]; p == nil {
			return
		}
	}
	owned, n := t.owner(p)
	*n--
	delete(owned, process)
	delete(t.processes, process)
	for r := p.Run; r != nil && r.Around != nil && len(r.processes)+len(r.inner) == 0; r = r.Around {
		delete(r.Around.inner, r)
	}
}

// Serve follows a process as an agent of the lesser depth; nil if the tree is full. A process of a run stays in its
// run, and a worker with its agent, as do their children.
func (t *Tree) Serve(process event.Process, depth int) *Agent {
	if a := t.agents[process]; a != nil {
		a.Depth = min(a.Depth, depth)
		return a
	}
	a := &Agent{Process: process, Depth: depth, processes: map[event.Process]*Process{}}
	p := t.processes[process]
	if p == nil || p.Run == nil && !p.Worker {
		t.Remove(process)
		if t.add(&Process{Key: process, Agent: a}) == nil {
			return nil
		}
	}
	t.agents[process] = a
	return a
}

// Agent returns the agent that a process is, or nil.
func (t *Tree) Agent(process event.Process) *Agent { return t.agents[process] }

// Assign makes an agent's process and its later children workers for a call.
func (t *Tree) Assign(p *Process) { p.Worker = true }

// Dismiss stops following an agent and its descendants, except workers.
func (t *Tree) Dismiss(a *Agent) {
	if t.agents[a.Process] != a {
		return
	}
	delete(t.agents, a.Process)
	for key, p := range a.processes {
		if !p.Worker {
			t.Remove(key)
		}
	}
}
