// Package tree decides what each process is: the leader of a run, a delegate's, a command's,
// an agent's, or nobody's. It is the one place of that decision, pure and bounded: it reads no
// clock and does no I/O, and what does not fit is dropped and counted.
//
// A reader of events gives each Fork, Exec and Exit to Apply, in order, and acts on the Step
// that comes back. The probe and the timeline each keep a Tree of their own:
//
//   - The probe reads the standard input and output of Process.Run.Leader. Root and Delegate
//     begin new streams, Image reopens the input of the run's, and the others change nothing.
//     Run.Call names the container, Run.Vouched reports whether the runtime stands for it, and
//     Process.Depth how many agents are between a process and a plugin's tree. When the
//     kernel side begins to follow an agent the probe calls Serve, when it stops Dismiss; a
//     process of which no exit will come is given to Remove.
//   - The timeline makes an image of each Exec, and puts it below the run, the image or the
//     agent's connection that the Step names.
//
// The kernel side decides less, by what it can see: it follows more processes than belong to
// runs, and records more pipes than a run's. Whatever it sends is looked up here.
package tree

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Tree is the processes that are followed. Create it with New; it is not safe for concurrent use.
type Tree struct {
	limit     int
	processes map[event.Process]*Process
	agents    map[event.Process]*Agent
	inRuns    int
	ofAgents  int
	dropped   uint64
}

// New returns an empty tree that follows at most limit processes in runs, and as many that
// agents started outside of runs.
func New(limit int) *Tree {
	return &Tree{limit: limit, processes: map[event.Process]*Process{}, agents: map[event.Process]*Agent{}}
}

// Process is one process. Either Run or Agent is set.
type Process struct {
	Key event.Process
	// Run is the innermost run it belongs to, which may be over.
	Run *Run
	// Agent is the agent that it is, or that started it outside of a run.
	Agent *Agent
	// Worker: an agent's process that was given to a call (Tree.Assign), or a descendant of one.
	Worker bool
	// Kept is what the reader of the tree keeps of the process, so that it needs no map of its own. It
	// stays when the process goes on as a root.
	Kept any
}

// Leads reports whether p is its run's own process, the one that was started as the plugin.
func (p *Process) Leads() bool { return p.Run != nil && p.Run.Leader == p.Key }

// Depth is how many agents are between p and a plugin's tree: 0 in a run, whoever started that; 1 for an
// agent that a run calls, and for what it starts; 2 for one that such an agent calls.
func (p *Process) Depth() int {
	if p.Run != nil {
		return 0
	}
	return p.Agent.Depth
}

// Run is one plugin's process tree, as long as one of its processes is there.
type Run struct {
	Leader event.Process
	// Stdin is what its leader's current image reads (event.Exec.Stdin).
	Stdin string
	// Call is what the leader was told by its environment when the run began, Home the
	// network namespace it began in.
	Call *event.Call
	Home event.Namespace
	// Around is the run that this one is a delegate of; nil if it is none.
	Around *Run
	// Agent is the agent that started it; nil if that was a run, the runtime, or somebody unknown.
	Agent *Agent
	// Over: its leader has exited. What it left behind still belongs to it.
	Over bool

	caller    event.Caller
	nested    int // how many runs are around it
	processes map[event.Process]*Process
	inner     map[*Run]struct{}
}

// maxNested bounds the delegates inside each other. One run keeps all around it, so that a plugin
// whose child goes on as the next delegate, again and again, would grow without any bound.
// Plugins nest two or three deep.
const maxNested = 32

// Vouched reports whether the container runtime stands for the run: it started it, or an agent
// did that answered a plugin.
func (r *Run) Vouched() bool {
	for r.Around != nil {
		r = r.Around
	}
	return r.caller.Anchored() || r.caller == event.CallerAgent
}

// Agent is a process that answers plugins.
type Agent struct {
	Process event.Process
	// Depth is 1 if a run calls it, 2 if an agent of depth 1 does, and so on.
	Depth int

	processes map[event.Process]*Process
}

// Role is what an event made of a process.
type Role int

// The roles.
const (
	// Unknown: it belongs to nothing that is followed.
	Unknown Role = iota
	// Refused: the tree is full. Step.Process is the parent; nil for a root.
	Refused
	// Forked: a new process, which runs no image of its own so far.
	Forked
	// Root: the leader of a run that is inside no other one.
	Root
	// Delegate: the leader of a run that a process of another run started.
	Delegate
	// Image: a leader runs another image; the run goes on.
	Image
	// Command: another program in a run.
	Command
	// Work: a program that an agent started, or its own.
	Work
	// Exited: the process is gone.
	Exited
)

// Step is what an event came to.
type Step struct {
	Role    Role
	Process *Process
	// Parent forked it; of Forked only.
	Parent *Process
	// New: the process was not known before, though its fork should have been told.
	New bool
}

// Apply takes the next event. Events other than Fork, Exec and Exit are Unknown.
func (t *Tree) Apply(body event.Body) Step {
	switch b := body.(type) {
	case *event.Fork:
		return t.fork(b.Process, b.Parent)
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

// Get returns a process; nil if it is not followed.
func (t *Tree) Get(process event.Process) *Process { return t.processes[process] }

// Len returns how many processes are followed.
func (t *Tree) Len() int { return len(t.processes) }

// Dropped returns how many processes were not followed because the tree was full.
func (t *Tree) Dropped() uint64 { return t.dropped }

// Each calls f for every process, in no order.
func (t *Tree) Each(f func(*Process)) {
	for _, p := range t.processes {
		f(p)
	}
}

// Processes lists the keys of all processes, sorted.
func (t *Tree) Processes() []event.Process { return slices.Sorted(maps.Keys(t.processes)) }

func (t *Tree) fork(process, parent event.Process) Step {
	up := t.processes[parent]
	if up == nil || t.processes[process] != nil { // found before its fork was read, or told twice
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
		forked := t.fork(e.Process, e.Parent) // which was lost
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
			step.Process.Kept = p.Kept
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

// delegates tells a plugin that a plugin started from a helper of it. Both inherit the environment of the
// call; but a delegate lies in CNI_PATH and is given a configuration of its own to read. Where it is unknown
// what it reads the folder decides. Below maxNested delegates every program is a command.
func delegates(e *event.Exec, in *Run) bool {
	return in.nested < maxNested && e.InPath && e.Call != nil && e.Stdin != event.NoStdin && (e.Stdin != in.Stdin || e.Stdin == "")
}

// root begins a run that up started, or that it goes on as; nil where that is followed by nobody.
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

// add makes the run or the agent of a process its owner; nil, and then it is counted, beyond the limit.
func (t *Tree) add(p *Process) *Process {
	owned, n := t.owner(p)
	if *n >= t.limit {
		t.dropped++
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

// Remove forgets a process that has exited or is no longer followed. If it leads a run, the run is over.
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
	if p.Run == nil {
		return
	}
	if p.Leads() {
		p.Run.Over = true
	}
	for r := p.Run; r.Around != nil && len(r.processes)+len(r.inner) == 0; r = r.Around {
		delete(r.Around.inner, r)
	}
}

// Serve begins to follow a process as an agent of that depth; of one that is followed already the lesser
// depth counts. A process of a run stays in its run, and one that works for a call with its agent; so does
// what they start. It returns nil where the tree is full.
func (t *Tree) Serve(process event.Process, depth int) *Agent {
	if a := t.agents[process]; a != nil {
		a.Depth = min(a.Depth, depth)
		return a
	}
	a := &Agent{Process: process, Depth: depth, processes: map[event.Process]*Process{}}
	p := t.processes[process]
	if p == nil || p.Run == nil && !p.Worker {
		t.Remove(process) // what another agent started answers itself
		if t.add(&Process{Key: process, Agent: a}) == nil {
			return nil
		}
	}
	t.agents[process] = a
	return a
}

// Agent returns the agent that a process is; nil if it is none.
func (t *Tree) Agent(process event.Process) *Agent { return t.agents[process] }

// Assign says that an agent's process works for a call, as will what it starts: it is followed
// until it exits, though its agent may be dismissed.
func (t *Tree) Assign(p *Process) { p.Worker = true }

// Dismiss ends following an agent and what it started for nobody.
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
