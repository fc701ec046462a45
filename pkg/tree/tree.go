// Package tree decides the role of each process: the leader of a plugin run, or a process of a delegated plugin, a
// command or an agent. It is pure and bounded: it reads no clock and does no I/O, and drops and counts processes
// beyond its limit.
//
// A reader of events passes each Fork, Exec and Exit to Apply, in order, and acts on the returned Step. The probe and
// the timeline each have a Tree:
//
//   - The probe reads the standard input and output of Process.Run.Leader. Root and Delegate begin new streams, Image
//     reopens the input of the run's; other roles change nothing. Run.Call names the container, Run.Vouched reports
//     whether the runtime or an agent started the run, and Process.Depth is the number of agents between a process
//     and a plugin's tree. The probe calls Serve when the kernel side begins to follow an agent, and Dismiss when it
//     stops; Remove is for a process whose exit will not come.
//   - The timeline makes an image of each Exec, and puts it below the run, the image or the agent's connection of the
//     Step.
//
// The kernel side follows more processes than belong to runs, and records more pipes than a run's: the tree filters
// them.
package tree

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Tree is the set of followed processes. Create it with New; it is not safe for concurrent use.
type Tree struct {
	limit     int
	processes map[event.Process]*Process
	agents    map[event.Process]*Agent
	inRuns    int
	ofAgents  int
	dropped   uint64
}

// New returns an empty tree that follows at most limit processes in runs, and as many that agents started outside of
// runs.
func New(limit int) *Tree {
	return &Tree{limit: limit, processes: map[event.Process]*Process{}, agents: map[event.Process]*Agent{}}
}

// Process is one process. Either Run or Agent is set.
type Process struct {
	Key event.Process
	// Run is the innermost run of the process; it may be over.
	Run *Run
	// Agent is the process itself, or the agent that started it outside of a run.
	Agent *Agent
	// Worker is true for an agent's process that was assigned to a call (Tree.Assign), and for its descendants.
	Worker bool
	// Kept is the tree user's data about the process. It stays if the process becomes a root.
	Kept any
}

// Leads reports whether p is the plugin process of its run.
func (p *Process) Leads() bool { return p.Run != nil && p.Run.Leader == p.Key }

// Depth returns the number of agents between p and a plugin's tree: 0 in a run, even one that an agent started; 1 for
// an agent that a run calls, and for its descendants; 2 for one that such an agent calls.
func (p *Process) Depth() int {
	if p.Run != nil {
		return 0
	}
	return p.Agent.Depth
}

// Run is one plugin's process tree, while one of its processes exists.
type Run struct {
	Leader event.Process
	// Stdin is the standard input of its leader's current image (event.Exec.Stdin).
	Stdin string
	// Call is the leader's environment when the run began, Home its network namespace then.
	Call *event.Call
	Home event.Namespace
	// Around is the run that delegated to this one; nil for the outermost.
	Around *Run
	// Agent is the agent that started it; nil if a run, the runtime, or an unknown process did.
	Agent *Agent
	// Over is true after the leader's exit. Remaining processes still belong to it.
	Over bool

	caller    event.Caller
	nested    int // number of enclosing runs
	processes map[event.Process]*Process
	inner     map[*Run]struct{}
}

// maxNested bounds nested delegated plugins: a run holds all enclosing ones, so a plugin whose child becomes the next
// delegated plugin repeatedly would grow without bound. Plugins nest two or three deep.
const maxNested = 32

// Vouched reports whether the container runtime started the run, or an agent that answered a plugin.
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

// Role is the effect of an event on a process.
type Role int

// The roles.
const (
	// Unknown: it belongs to no followed process.
	Unknown Role = iota
	// Refused: the tree is full. Step.Process is the parent; nil for a root.
	Refused
	// Forked: a new process, which has not executed an image yet.
	Forked
	// Root: the leader of an outermost run.
	Root
	// Delegate: the leader of a run that a process of another run started.
	Delegate
	// Image: a leader executes another image; the run goes on.
	Image
	// Command: another program in a run.
	Command
	// Work: an agent's program, or one that it started.
	Work
	Exited
)

// Step is the result of an event.
type Step struct {
	Role    Role
	Process *Process
	// Parent forked it; of Forked only.
	Parent *Process
	// New is true if the process was unknown, because its fork was lost.
	New bool
}

// Apply processes the next event. Events other than Fork, Exec and Exit are Unknown.
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

// Len returns the number of followed processes.
func (t *Tree) Len() int { return len(t.processes) }

// Dropped returns the number of processes that were not followed because the tree was full.
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
	if up == nil || t.processes[process] != nil { // found before its fork was read, or reported twice
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
		forked := t.fork(e.Process, e.Parent) // its fork was lost
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

// delegates distinguishes a delegated plugin from a plugin's command. Both inherit the environment of the call, but a
// delegated plugin is in CNI_PATH and reads a configuration of its own. If its input is unknown, the directory
// decides. Below maxNested every program is a command.
func delegates(e *event.Exec, in *Run) bool {
	return in.nested < maxNested && e.InPath && e.Call != nil && e.Stdin != event.NoStdin && (e.Stdin != in.Stdin || e.Stdin == "")
}

// root begins a run that up started, or that up becomes; up is nil if it is not followed.
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

// add adds a process to its run or agent; beyond the limit it returns nil and counts.
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

// Remove drops a process that exited or is no longer followed. If it leads a run, the run is over.
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

// Serve begins to follow a process as an agent of that depth; for a followed agent the lesser depth counts. A process
// of a run stays in its run, and one that works for a call with its agent, as do their children. It returns nil if
// the tree is full.
func (t *Tree) Serve(process event.Process, depth int) *Agent {
	if a := t.agents[process]; a != nil {
		a.Depth = min(a.Depth, depth)
		return a
	}
	a := &Agent{Process: process, Depth: depth, processes: map[event.Process]*Process{}}
	p := t.processes[process]
	if p == nil || p.Run == nil && !p.Worker {
		t.Remove(process) // an agent's child that answers itself
		if t.add(&Process{Key: process, Agent: a}) == nil {
			return nil
		}
	}
	t.agents[process] = a
	return a
}

// Agent returns the agent that a process is; nil if it is none.
func (t *Tree) Agent(process event.Process) *Agent { return t.agents[process] }

// Assign marks an agent's process as working for a call, with its later children: it is followed until it exits, even
// if its agent is dismissed.
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
