// Package timeline joins events into operations: which process belongs to which
// run, which runs to which call, which calls to which sandbox, and when all of it is
// over. It is a pure state machine. It reads no clock; whatever waits for time to
// pass waits for ticks, so the same events give the same operations.
package timeline

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Options bound what a timeline waits for and holds.
type Options struct {
	// Settle is how long after its last run an operation waits for more: for the next
	// plugin of the chain, and for NRI to name the pod.
	Settle time.Duration
	// MaxHold is how long an operation is held at the most.
	MaxHold time.Duration
	// Wait is how long an operation that is over waits for the runtime to tell what is
	// above those of its calls whose environment says nothing. 0: it does not.
	Wait time.Duration
	// Hung is how long a call may be under way before it is spoken of; 0 is for ever.
	Hung time.Duration
	// MinSpan is how long a wait or a query lasts at least that is kept, and not only
	// counted.
	MinSpan time.Duration
	// Processes and Operations are how many are held at once, Images and Facts how many of
	// each one operation keeps. What is over is counted.
	Processes, Operations, Images, Facts int
}

// Stats counts what a timeline could not place.
type Stats struct {
	// Late are events of operations that were closed already.
	Late uint64
	// Refused are runs, and processes of runs, beyond the limits.
	Refused uint64
	// Unanchored are runs that the container runtime did not start, beyond their half of
	// Options.Operations.
	Unanchored uint64
	// Orphaned are operations that waited in vain to be told what is above them, or had no
	// room to wait.
	Orphaned uint64
}

// Timeline is the state between the events. It is not safe for concurrent use.
type Timeline struct {
	options Options
	stats   Stats

	tree      *tree.Tree
	processes map[event.Process]*process // that belong to open operations
	open      []*operation               // in order of their start
	sandboxes map[string]*sandbox
	history   *history
	hearsay   *history // of what the runtime does not stand for
	orphans   *history // the last ones that waited in vain, by container
	networks  []event.Network
	locks     *locks
	suspects  suspects
	sockets   map[string]*Connection
	accepts   []*event.Accept // of connections that are not told yet
	// agents are those that runs call.
	agents map[event.Process]*agent
	early  []belated
	// namespaces are those of the pods that are set up, by key.
	namespaces map[string]*namespace
	connected  []Connected
	outage     *Outage // under way
	outages    []Outage
	extents    []Interval // of the calls that are over, as far as others concur with them
	// seeing: the inside of processes is seen.
	seeing bool
	swept  int64 // when what nobody asked for any more was last forgotten
	// nri: NRI speaks to us, so it will say when a sandbox runs.
	nri bool
	// configured is when the networks became what they are.
	configured int64
	runtime    event.Runtime
	mono       int64 // the last Clock
	wall       int64
	now        int64 // the latest event
}

// process is one process of a run.
type process struct {
	op *operation
	// up is what its images belong under: the image its parent ran when it forked.
	up *Image
	// image is what it runs; nil before its first exec.
	image *Image
	run   *Image // the innermost that it belongs to
	call  *Call

	tries       []try
	answers     []*event.Answer
	connections []*Connection
	// evidence is how a process of a server's belongs here; nil for those of a plugin.
	evidence *Attribution
	// doing is how what it does just now belongs here, if it is a server's work.
	doing *Attribution
}

// New returns an empty timeline.
func New(o Options) *Timeline {
	return &Timeline{
		options:   o,
		tree:      tree.New(o.Processes),
		processes: map[event.Process]*process{},
		sandboxes: map[string]*sandbox{},
		history:   newHistory(4 * o.Operations),
		hearsay:   newHistory(4 * o.Operations),
		orphans:   newHistory(o.Operations),

		locks:      newLocks(o.Operations),
		sockets:    map[string]*Connection{},
		agents:     map[event.Process]*agent{},
		namespaces: map[string]*namespace{},
	}
}

// Apply takes the next event and returns the operations it brought to an end, in
// order of their start.
func (t *Timeline) Apply(e event.Event) []*Operation {
	t.now = max(t.now, e.Time)
	switch b := e.Body.(type) {
	case *event.Exec:
		return t.exec(e.Time, b)
	case *event.Fork:
		t.fork(b)
	case *event.Exit:
		t.exit(e.Time, b)
	case *event.Sandbox:
		t.sandbox(e.Time, b)
	case *event.Above:
		return t.above(b)
	case *event.Tick:
		return t.tick(e.Time)
	case *event.Lost:
		t.lost(e.Time, b)
	case *event.Networks:
		t.reconfigure(e.Time, b)
	case *event.Readiness:
		t.readiness(e.Time, b)
	case *event.Runtime:
		t.runtime = *b
	case *event.Degraded:
		if b.Feature == "nri" {
			t.nri = b.Restored
			t.unheard()
		}
	case *event.Clock:
		t.mono, t.wall = e.Time, b.Wall
	default:
		t.inside(e.Time, b)
	}
	return nil
}

// noticed is how long after the CNI folder was written that is told, in ns: it is let come
// to rest, and read (pkg/cniconf, pace). What began in the meantime began after that.
const noticed = int64(250 * time.Millisecond)

func (t *Timeline) reconfigure(now int64, b *event.Networks) {
	t.networks, t.configured = b.Networks, now
	t.refolder(now, b.Networks)
	for _, op := range t.open {
		for _, call := range op.Calls {
			if written := now - noticed; call.live() != nil && call.Start < written {
				call.Reconfigured = written
			}
		}
	}
}

// Flush closes whatever is open, at the end of the stream. What had not settled may
// have gone on.
func (t *Timeline) Flush() []*Operation {
	t.options.Wait = 0 // nothing is told any more
	return t.close(func(op *operation) Closed {
		if why := t.over(op, t.now); why != "" {
			return why
		}
		return ClosedFinished
	})
}

// Open returns the number of operations that are not closed.
func (t *Timeline) Open() int { return len(t.open) }

// Stats returns what could not be placed so far.
func (t *Timeline) Stats() Stats { return t.stats }

func (t *Timeline) fork(f *event.Fork) {
	step, parent := t.tree.Apply(f), t.processes[f.Parent]
	switch {
	case step.Role == tree.Unknown:
		t.stats.Late++
	case parent == nil: // an agent's
	case step.Role == tree.Refused:
		t.oneTooMany(parent)
	default:
		t.add(f.Process, parent)
	}
}

// oneTooMany counts a process below parent that is one too many.
func (t *Timeline) oneTooMany(parent *process) {
	t.stats.Refused++
	if parent != nil {
		parent.op.partial("more processes than the limit")
	}
}

// add makes a process below another one.
func (t *Timeline) add(key event.Process, parent *process) *process {
	p := &process{op: parent.op, up: parent.image, run: parent.run, call: parent.call}
	if p.up == nil { // forked by a subshell
		p.up = parent.up
	}
	t.processes[key] = p
	return p
}

// operation is an Operation that is not closed.
type operation struct {
	*Operation
	// began is who started its first run.
	began event.Caller
	// unheard: what NRI said of it may have been lost.
	unheard bool
	images  int // kept so far
	facts   int // kept so far of what is inside them
	// namespaces is how many it works on; names are its interfaces', as far as they were
	// told.
	namespaces int
	names      interfaces
	live       int // runs of calls (not delegates) that have not ended
	// commit is when something was said that ends the operation as soon as its runs
	// are over; closed is what.
	commit int64
	closed Closed
	// until is how long it waits for what is above its calls, once it is over; 0 before.
	until    int64
	suspects []*suspect // its runs, as far as others may have waited for them
	// aboves are the runtime's spans of the sandbox, as far as they were told.
	aboves []*event.Above
}

func (op *operation) partial(why string) {
	if i, found := slices.BinarySearch(op.Partial, why); !found {
		op.Partial = slices.Insert(op.Partial, i, why)
	}
}
