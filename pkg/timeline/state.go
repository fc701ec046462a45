package timeline

import (
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
	node    node

	tree *tree.Tree   // it keeps the processes that belong to open operations
	open []*operation // in order of their start

	agents      *agents
	connections *connections
	interfaces  *interfaces
	locks       *locks
	sandboxes   sandboxes
	firsts      firsts
	afters      afters
	losses      losses
	outages     outages
	past        pasts
}

// passed is how far time has passed, in monotonic ns.
type passed struct {
	now   int64 // the latest event
	swept int64 // when old locks and namespaces were last forgotten
}

// New returns an empty timeline.
func New(o Options) *Timeline {
	t := &Timeline{
		options:   o,
		tree:      tree.New(o.Processes),
		sandboxes: sandboxes{limit: 4 * o.Operations, known: map[string]*sandbox{}},
		firsts:    firsts{limit: o.Operations, namespaces: map[string]*namespace{}},
		past:      newPasts(o.Operations),
	}
	t.afters = afters{limit: o.Operations, dropped: &t.stats.AfterDropped, known: map[string]*done{}, abandon: t.abandon}
	t.losses = losses{limit: o.Operations, late: &t.stats.Late}
	t.agents = newAgents(o.Operations, t.tree, &t.losses)
	t.connections = newConnections(t.agents)
	t.interfaces = newInterfaces(interfacesMax)
	t.locks = newLocks(o.Operations, t.tree)
	return t
}
