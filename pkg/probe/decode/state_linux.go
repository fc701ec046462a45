package decode

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/netlink"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Options of a Decoder.
type Options struct {
	Arguments arguments.Mode
	// Here translates a PID of the initial namespace to ours.
	Here    func(tgid uint32) (uint32, bool)
	Symbols *symbols.Table
	// names the functions of programs; may be nil
	Functions *functions.Stacks
	Processes int
	Garbled   *atomic.Uint64 // spans of threads; may be nil
	// returns a plugin's environment; may be nil
	Environ func(*event.Exec) []string
}

// Decoder makes events. It is not safe for concurrent use.
type Decoder struct {
	options   Options
	tree      *tree.Tree
	processes map[event.Process]*process
	byNumber  map[uint32]event.Process // by tgid of the initial namespace
	names     map[uint16]string
	// holders of awaited locks, by waiting thread
	holders map[uint32]*holder
	links   names
	// key of the node's network namespace
	home      string
	sandboxes evidence.Sandboxes
	// redaction for processes of no call, or of several
	nobody    redact.Call
	inherited redact.Inherited
	// at least kept()
	most   int
	seed   maphash.Seed
	forks  kernel.LifeForkEvent
	execs  kernel.LifeExecEvent
	steps  steps
	calls  kernel.InsideCallEvent
	asks   netlink.Call // for calls
	room   [8]event.Body
	events []event.Event
	// recent texts
	spelt  [256]spelt
	cookie uint64
	inum   uint32
	space  event.Namespace
}

type spelt struct {
	key  kernel.Key
	name event.Process
}

func (d *Decoder) processOf(k kernel.Key) event.Process {
	s := &d.spelt[k.Tgid%uint32(len(d.spelt))]
	if s.name == "" || s.key.Tgid != k.Tgid || s.key.Start != k.Start {
		*s = spelt{k, kernel.ProcessOf(k)}
	}
	return s.name
}

func (d *Decoder) namespace(cookie uint64, inum uint32) event.Namespace {
	if cookie != d.cookie || inum != d.inum {
		d.cookie, d.inum, d.space = cookie, inum, namespace(cookie, inum)
	}
	return d.space
}

type process struct {
	number uint32 // tgid
	run    *run
	// inodes of pipes, or 0; environ and arguments are from the last exec
	stdin, stdout      uint64
	environ, arguments []string
	// network namespaces by descriptor
	files map[uint32]event.Namespace
	// by thread
	refused [4]*event.Connect
	// as the kernel reported them to the process
	links     names
	addresses map[string]event.AddressState
}

// run is shared by the processes of a plugin run, or belongs to a single other process.
type run struct {
	of      *tree.Run // nil: none, or from before the probe
	leader  uint32    // its PID, in our namespace
	streams *streams
	known   *redact.Call
	// interfaces that the run changed
	touched map[string]bool
	// the last exec's, which commands inherit
	env   string
	split []string
}

func (r *run) variables(env []byte) []string {
	if string(env) != r.env {
		r.env, r.split = string(env), slices.Clip(procfs.Split(env))
	}
	return r.split
}

// Bounds per process; maxNames is for all.
const (
	maxFiles     = 64
	maxAddresses = 64
	maxLinks     = 64
	maxTouched   = 64
	maxNames     = 4096
)

// Found adds a process from before it was followed.
func (d *Decoder) Found(e *event.Exec, args []string) {
	d.mentions(e, args)
	d.get(e.Process, e.Parent)
	d.tree.Apply(e)
}

func (d *Decoder) get(process, parent event.Process) *process {
	if p := d.processes[process]; p != nil {
		return p
	}
	return d.add(process, parent)
}

func (d *Decoder) add(key, parent event.Process) *process {
	p := &process{number: kernel.KeyOf(key, 0).Tgid}
	d.byNumber[p.number] = key
	if up := d.processes[parent]; up != nil && up.run.of != nil {
		p.run = up.run
	} else {
		p.run = &run{}
	}
	d.processes[key] = p
	return p
}

// Serve begins to follow an agent.
func (d *Decoder) Serve(agent event.Process, depth int) {
	d.get(agent, "")
	d.tree.Serve(agent, depth)
}

// Dismiss leaves the agent's descendants followed.
func (d *Decoder) Dismiss(agent event.Process) {
	if a := d.tree.Agent(agent); a != nil {
		d.tree.Dismiss(a)
	}
	d.forget(agent)
}

// Depth is tree.Process.Depth; 0 if unknown.
func (d *Decoder) Depth(process event.Process) int {
	if p := d.tree.Get(process); p != nil {
		return p.Depth()
	}
	return 0
}

// Keep drops unfollowed processes with their waits, and sandboxes without runs since before (monotonic ns).
func (d *Decoder) Keep(follows func(event.Process) bool, before int64) {
	for process := range d.processes {
		if !follows(process) {
			d.forget(process)
		}
	}
	maps.DeleteFunc(d.holders, func(_ uint32, h *holder) bool { return !follows(h.waiter) })
	d.sandboxes.Forget(before)
}

// ForgetWaits drops unfinished waits.
func (d *Decoder) ForgetWaits() { clear(d.holders) }

func (d *Decoder) forget(process event.Process) {
	if p := d.processes[process]; p != nil && d.byNumber[p.number] == process {
		delete(d.byNumber, p.number)
	}
	delete(d.processes, process)
	d.tree.Remove(process)
}

// known returns a process's redaction. Commands repeat the plugin's input, even after its exit.
func (d *Decoder) known(process event.Process) *redact.Call {
	if p := d.processes[process]; p != nil && p.run.known != nil {
		return p.run.known
	}
	return &d.nobody
}
