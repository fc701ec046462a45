package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/agents"
	"github.com/cniscope/cniscope/pkg/pods"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Stats counts what a timeline could not place or had no room for.
type Stats struct {
	// Late are events of operations that were closed already.
	Late uint64
	// Refused are runs, and processes of runs, beyond the limits.
	Refused uint64
	// Unanchored are runs that the container runtime did not start, beyond their half of Options.Operations.
	Unanchored uint64
	// Orphaned are operations that waited in vain to be told what is above them, or had no room to wait.
	Orphaned uint64
	// AfterDropped are programs that agents ran after an ADD, beyond what is kept for one pod.
	AfterDropped uint64
}

// Timeline is the state between the events. Create it with New; it is not safe for concurrent
// use. Each kind of state has a type that owns it; the methods of Timeline pass events on.
type Timeline struct {
	passed
	options Options
	stats   Stats
	node    pods.Node

	tree *tree.Tree          // it keeps the processes that belong to open operations
	open []*active.Operation // in order of their start

	agents      *agents.Agents
	connections *agents.Connections
	pods        *pods.Pods
	interfaces  *active.Interfaces
	locks       *active.Locks
	networks    networks
	losses      losses
	past        pasts

	nri    bool // NRI speaks to us, so it will say when a sandbox runs
	seeing bool // system calls of processes are observed
}

// passed is how far time has passed, in monotonic ns.
type passed struct {
	now   int64 // the latest event
	swept int64 // when old locks and namespaces were last forgotten
}

// New returns an empty timeline.
func New(o Options) *Timeline {
	t := &Timeline{
		options: o,
		tree:    tree.New(o.Processes),
		past:    newPasts(o.Operations),
	}
	t.pods = pods.New(o.Operations, t.abandon)
	t.losses = losses{limit: o.Operations, late: &t.stats.Late}
	t.agents = agents.New(o.Operations, t.tree, t.losses.belongs)
	t.connections = agents.NewConnections(t.agents)
	t.interfaces = active.NewInterfaces(active.InterfacesMax)
	t.locks = active.NewLocks(o.Operations, t.tree)
	return t
}

// Options bound what a timeline waits for and holds.
type Options struct {
	// Settle is how long after its last run an operation waits for more: for the next
	// plugin of the chain, and for NRI to name the pod.
	Settle time.Duration
	// MaxHold is how long an operation is held at the most.
	MaxHold time.Duration
	// Wait is how long an operation that is over waits for the runtime's spans (event.Above),
	// if the environment of its calls names no parent. 0: it does not wait.
	Wait time.Duration
	// Hung is how long a call may take before Timeline.Overdue returns it; 0 is for ever.
	Hung time.Duration
	// MinSpan is how long a wait or a query lasts at least that is kept, and not only counted.
	MinSpan time.Duration
	// Processes and Operations are how many are held at once, Images and Facts how many of
	// each one operation keeps. What exceeds a limit is counted.
	Processes, Operations, Images, Facts int
}
