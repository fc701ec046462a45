package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/pods"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Stats counts dropped events and refused processes.
type Stats struct {
	// Events of closed operations.
	Late uint64
	// Runs and their processes, beyond the limits.
	Refused uint64
	// Runs that the container runtime did not start, beyond their half of Options.Operations.
	Unanchored uint64
	// Operations whose runtime span did not come, or that could not wait for it.
	Orphaned uint64
	// Programs that agents ran after an ADD, beyond one pod's limit.
	AfterDropped uint64
}

// Timeline is the state between events. It is not safe for concurrent use. Each field's type owns its state.
type Timeline struct {
	options Options
	stats   Stats
	node    pods.Node
	now     int64 // monotonic ns
	swept   int64

	tree *tree.Tree          // of processes in open operations
	open []*active.Operation // by start

	agents      *active.Agents
	connections *active.Connections
	pods        *pods.Pods
	interfaces  *active.Interfaces
	locks       *active.Locks
	networks    networks
	losses      losses
	past        pasts

	nri    bool   // NRI will report running sandboxes
	seeing bool   // system calls are observed
	cut    string // what operations in progress lack when all are closed
	// Runtimes of which NRI has reported a sandbox: a node may have several.
	reporting map[event.Process]bool
	// PID of the runtime that NRI is connected to; 0 if unknown.
	registered uint32
}

// New returns an empty timeline.
func New(o Options) *Timeline {
	t := &Timeline{
		options:   o,
		past:      newPasts(o.Operations),
		reporting: map[event.Process]bool{},
	}
	t.pods = pods.New(o.Operations, o.Late, t.abandon)
	t.interfaces = active.NewInterfaces(active.InterfacesMax)
	t.follow()
	return t
}

func (t *Timeline) follow() {
	t.tree = tree.New(t.options.Processes)
	t.losses = losses{limit: t.options.Operations, late: &t.stats.Late}
	t.agents = active.NewAgents(t.options.Operations, t.tree, t.losses.belongs)
	t.connections = active.NewConnections(t.agents)
	t.locks = active.NewLocks(t.options.Operations, t.tree)
}

// Options bound waiting and memory.
type Options struct {
	// How long after its last run an operation waits for the chain's next plugin, and for NRI to name the pod.
	Settle time.Duration
	// Maximum duration of an operation.
	MaxHold time.Duration
	// How long an ended operation waits for the runtime's spans if no environment names a parent; 0 is not at all.
	Wait time.Duration
	// Age at which Overdue returns a call; 0 is never.
	Hung time.Duration
	// How long after its setup a pod's first connection is late; 0 is never.
	Late time.Duration
	// Minimum duration of stored waits and queries. Shorter ones are only counted.
	MinSpan time.Duration
	// Limits in total (Processes, Operations), and per operation.
	Processes, Operations, Images, Facts int
}
