package decode

import (
	"hash/maphash"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Options of a Decoder.
type Options struct {
	// Arguments says which arguments of commands are kept.
	Arguments arguments.Mode
	// Here is the number that a process has in our PID namespace, by the one that it has in the
	// initial one, which the kernel keeps. False: it has none, or that cannot be known.
	Here func(tgid uint32) (uint32, bool)
	// Symbols name the kernel's locks.
	Symbols *symbols.Table
	// Processes is how many processes are known at once.
	Processes int
	// Environ returns what a plugin was told by its environment; nil where nobody can ask.
	Environ func(*event.Exec) []string
}

// Decoder turns records into events. It keeps, for each process, what later records refer to;
// all of it goes with the process. It is not safe for concurrent use.
type Decoder struct {
	options   Options
	tree      *tree.Tree
	processes map[event.Process]*process
	byNumber  map[uint32]event.Process // by tgid, as the initial namespace counts
	names     map[uint16]string        // of system calls
	// holders are those of the locks that threads wait for, by thread.
	holders map[uint32]*holder
	// links are the names of interfaces, as the kernel said last to whoever is followed.
	links names
	// home is the network namespace in which the runtime starts plugins: the node's, by key.
	home      string
	sandboxes evidence.Sandboxes
	// nobody is what is known of the calls of processes that work for none, or for several.
	nobody redact.Call
	seed   maphash.Seed
	// execs and calls are the record that is being read: its room is used again.
	execs kernel.LifeExecEvent
	calls kernel.InsideCallEvent
}

// process is what is known of one process besides its place in the tree.
type process struct {
	number uint32 // its tgid
	run    *run
	// stdin and stdout are the inodes of the pipes that its last image was given, 0 where that is
	// something else; environ and arguments are what it was given besides.
	stdin, stdout      uint64
	environ, arguments []string
	// files are the network namespaces it has open, by descriptor.
	files map[uint32]event.Namespace
	// links are the names of interfaces it was told.
	links names
	// addresses are the states of IPv6 addresses it was told, by interface.
	addresses map[string]event.AddressState
}

// run is what is known of a run; of a process that belongs to none, of that alone.
type run struct {
	of      *tree.Run // nil if it is none, or began before the probe was attached
	streams *streams
	// known is what must not be repeated of what the plugin was told; nil: nothing.
	known *redact.Call
	// touched are the interfaces that were changed.
	touched map[string]bool
}

// Bounds of what is kept for one process, and for all.
const (
	maxFiles     = 64
	maxAddresses = 64
	maxLinks     = 64
	maxTouched   = 64
	maxNames     = 4096 // of interfaces that anybody was told
)

// Found notes a process that ran before anybody followed it, with those arguments. What it did so far is unknown.
func (d *Decoder) Found(e *event.Exec, args []string) {
	d.mentions(e, args)
	d.get(e.Process, e.Parent)
	d.tree.Apply(e)
}

// get returns what is known of a process; nothing, if it is new.
func (d *Decoder) get(process, parent event.Process) *process {
	if p := d.processes[process]; p != nil {
		return p
	}
	return d.add(process, parent)
}

func (d *Decoder) add(key, parent event.Process) *process {
	p := &process{number: kernel.KeyOf(key, 0).Tgid, run: &run{}}
	d.byNumber[p.number] = key
	if up := d.processes[parent]; up != nil && up.run.of != nil {
		p.run = up.run
	}
	d.processes[key] = p
	return p
}

// Serve begins to follow an agent, and Dismiss ends it. What it started is followed until it is over.
func (d *Decoder) Serve(agent event.Process, depth int) {
	d.get(agent, "")
	d.tree.Serve(agent, depth)
}

// Dismiss is described at Serve.
func (d *Decoder) Dismiss(agent event.Process) {
	if a := d.tree.Agent(agent); a != nil {
		d.tree.Dismiss(a)
	}
	d.forget(agent)
}

// Depth is how many agents are between a process and a plugin's tree (tree.Process).
func (d *Decoder) Depth(process event.Process) int {
	if p := d.tree.Get(process); p != nil {
		return p.Depth()
	}
	return 0
}

// Keep drops what is known of processes that nobody follows any more, and of sandboxes whose last
// run was over before that time (monotonic ns).
func (d *Decoder) Keep(follows func(event.Process) bool, before int64) {
	for process := range d.processes {
		if !follows(process) {
			d.forget(process)
		}
	}
	d.sandboxes.Forget(before)
}

// ForgetWaits drops what belongs to waits that nobody will tell the end of.
func (d *Decoder) ForgetWaits() { clear(d.holders) }

func (d *Decoder) forget(process event.Process) {
	if p := d.processes[process]; p != nil && d.byNumber[p.number] == process {
		delete(d.byNumber, p.number)
	}
	delete(d.processes, process)
	d.tree.Remove(process)
}

// known returns what is known of the call that a process works for, also where it outlives its
// plugin: whatever a plugin runs may repeat what the plugin was told.
func (d *Decoder) known(process event.Process) *redact.Call {
	if p := d.processes[process]; p != nil && p.run.known != nil {
		return p.run.known
	}
	return &d.nobody
}
