package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/agents"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/pods"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Stats counts dropped events and refused processes.
type Stats struct {
	// Late counts events of closed operations.
	Late uint64
	// Refused counts runs, and processes of runs, beyond the limits.
	Refused uint64
	// Unanchored counts runs that the container runtime did not start, beyond their half of Options.Operations.
	Unanchored uint64
	// Orphaned counts operations whose span of the runtime did not come, or that could not wait for it.
	Orphaned uint64
	// AfterDropped counts programs that agents ran after an ADD, beyond the limit of one pod.
	AfterDropped uint64
}

// Timeline is the state between events. It is not safe for concurrent use. Each field's type owns its state; the
// methods of Timeline pass events on.
type Timeline struct {
	options Options
	stats   Stats
	node    pods.Node
	now     int64 // the latest event, in monotonic ns
	swept   int64 // when old locks and namespaces were last dropped

	tree *tree.Tree          // of processes in open operations
	open []*active.Operation // in order of their start

	agents      *agents.Agents
	connections *agents.Connections
	pods        *pods.Pods
	interfaces  *active.Interfaces
	locks       *active.Locks
	networks    networks
	losses      losses
	past        pasts

	nri    bool // NRI is connected and will report running sandboxes
	seeing bool // system calls are observed
	// reporting are the runtimes of which NRI has reported a sandbox: a node may have another runtime beside.
	reporting map[event.Process]bool
}

// New returns an empty timeline.
func New(o Options) *Timeline {
	t := &Timeline{
		options:   o,
		tree:      tree.New(o.Processes),
		past:      newPasts(o.Operations),
		reporting: map[event.Process]bool{},
	}
	t.pods = pods.New(o.Operations, t.abandon)
	t.losses = losses{limit: o.Operations, late: &t.stats.Late}
	t.agents = agents.New(o.Operations, t.tree, t.losses.belongs)
	t.connections = agents.NewConnections(t.agents)
	t.interfaces = active.NewInterfaces(active.InterfacesMax)
	t.locks = active.NewLocks(o.Operations, t.tree)
	return t
}

// Options bound waiting and memory.
type Options struct {
	// Settle is how long after its last run an operation waits for the next plugin of the chain, and for NRI to name
	// the pod.
	Settle time.Duration
	// MaxHold is the maximum duration of an operation.
	MaxHold time.Duration
	// Wait is how long an ended operation waits for the runtime's spans (event.Above) if its calls' environment names
	// no parent; 0 is not at all.
	Wait time.Duration
	// Hung is the age at which Overdue returns a call; 0 is never.
	Hung time.Duration
	// MinSpan is the minimum duration of stored waits and queries. Shorter ones are only counted.
	MinSpan time.Duration
	// Processes and Operations bound the total, Images and Facts each operation. Excess is counted.
	Processes, Operations, Images, Facts int
}
