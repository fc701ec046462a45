// Package model holds what the timeline makes of events, and the judge and the tracer read: operations, their
// calls, the images that these ran, and the facts of each. It is data only.
package model

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Kind is what an operation does to a pod's network.
type Kind string

// The kinds of operations.
const (
	Setup    Kind = "setup"    // ADD
	Teardown Kind = "teardown" // DEL
	Other    Kind = "other"    // CHECK, GC, STATUS, VERSION
)

// KindOf returns the kind of operation a CNI command belongs to.
func KindOf(command string) Kind {
	switch command {
	case "ADD":
		return Setup
	case "DEL":
		return Teardown
	}
	return Other
}

// Closed is why an operation was taken to be over.
type Closed string

// The reasons to close an operation.
const (
	ClosedRunning  Closed = "sandbox running"   // NRI said so
	ClosedNext     Closed = "next operation"    // a DEL of the same container began
	ClosedSettled  Closed = "settled"           // nothing more came
	ClosedHeld     Closed = "held too long"     // it lasts longer than cniscope waits
	ClosedFinished Closed = "observation ended" // the stream is over
)

// Lineage is what an operation follows on.
type Lineage struct {
	// Attempt counts the setups of one pod (by its uid), from 1; 0 where it is not known.
	// A kubelet tries again with a new sandbox when one fails.
	Attempt int
	// Before are the operations that this one follows on.
	Before []Before
}

// Gaps are what is not known of an operation.
type Gaps struct {
	// Lost is how many events of it, or of a time it was open in, never arrived.
	Lost uint64
	// Dropped is how many images were not kept because the operation has more than the limit.
	Dropped int
	// Partial says, sorted, why the operation may not be all there was. Empty if it is.
	Partial []string
}

// Operation is one sandbox's setup or teardown: its calls, and what is known of the
// pod. It is the unit of sampling and export.
type Operation struct {
	Kind        Kind
	ContainerID string
	Pod         event.Pod
	// Sandbox is what NRI said; nil where it said nothing.
	Sandbox *event.Sandbox
	// Running: NRI said that the sandbox runs. It may have stopped since.
	Running bool
	Runtime event.Runtime
	// Calls in order of their start.
	Calls []*Call
	// Start and End are the first exec and the last exit of a run, in monotonic ns.
	Start, End int64
	// Mono and Wall are one instant on both clocks, in ns, taken near Start.
	Mono, Wall int64
	Closed     Closed
	// MinSpan is how long what is inside a plugin lasts at least that is worth a span.
	MinSpan time.Duration
	Lineage
	Gaps
}

// Key returns what op is known by.
func (op *Operation) Key() Key {
	k := Key{Kind: op.Kind, ContainerID: op.ContainerID, Start: op.Start}
	if len(op.Calls) > 0 {
		k.First, k.Trace = op.Calls[0].Runs[0].Process, op.Calls[0].Trace
	}
	return k
}

// KeyOf is what a call of op is known by afterwards: where there is nothing above it, as its operation.
func (op *Operation) KeyOf(call *Call) Key {
	if call.Trace.Parent == "" {
		return op.Key()
	}
	return Key{Kind: op.Kind, ContainerID: op.ContainerID, First: call.Runs[0].Process, Start: call.Start, Trace: call.Trace}
}

// Network is the call that gives the pod its network: not that of lo.
func (op *Operation) Network() (found *Call) {
	for _, call := range op.Calls {
		switch {
		case call.Command != "ADD" || call.IfName == "lo":
		case call.IfName == "eth0":
			return call
		case found == nil:
			found = call
		}
	}
	return found
}

// Key is what an operation is known by afterwards.
type Key struct {
	Kind        Kind
	ContainerID string
	// First is the first process of its first call, and Start when that began.
	First event.Process
	Start int64
	// Trace is what was above its first call.
	Trace event.TraceContext
}

// Before is an operation that another one follows on.
type Before struct {
	Key
	// Why is how: "setup of the sandbox", "earlier teardown", "previous attempt".
	Why string
}

// Live reports whether a run of its calls is in progress.
func (op *Operation) Live() bool {
	return slices.ContainsFunc(op.Calls, func(call *Call) bool { return call.Live() != nil })
}

// Call is the runs of one network for one command, container and interface.
type Call struct {
	Command, IfName string
	// NetNS is the path in CNI_NETNS.
	NetNS string
	Parent
	// Network is the network's name, and NeverRun the plugins of its chain whose
	// turn never came: both only where the configuration leaves no doubt.
	Network  string
	NeverRun []string
	// Configured changes with the network's configuration (event.Network.Digest); empty if that is not known.
	Configured string
	// Hung: it was reported while it ran, because it took longer than slow.hung.
	Hung bool
	// Concurrent is the largest number of other calls on the node that ran at the same time.
	Concurrent int
	// Reconfigured is when the CNI folder changed during the call (the last time, exact to 250 ms); 0 if it
	// did not. The runtime then waits for the calls that run before it begins another one.
	Reconfigured int64
	// Seen: system calls of its processes were observed, for at least part of the time.
	Seen bool
	// Cut is how much of what its processes did was not kept, by what it is: "bytes",
	// "requests", "waits", "connections", "addresses", "sysctls", "other". Nil if all was.
	Cut map[string]uint64
	// First is the first connection of the pod; nil if it did not come while the operation
	// was open. See Connected.
	First *FirstConnection
	// Runs of the chain, in order of their start. Each has Image.Run set.
	Runs       []*Image
	Start, End int64
}

// Parent is what a call hangs under.
type Parent struct {
	// Trace is what the call's environment says; else, and then Told is set, what the runtime
	// told when the call was over. Empty if neither said anything.
	Trace event.TraceContext
	Told  bool
}

// FirstConnection is a pod's first TCP connection, if it was established while the setup was open.
type FirstConnection struct {
	// At is when it was there, in monotonic ns.
	At            int64
	Local, Remote string
}

// Live returns the run of the chain that is under way; nil if none is.
func (c *Call) Live() *Image {
	for _, run := range c.Runs {
		if !run.Ended {
			return run
		}
	}
	return nil
}

// Plugins lists the chain as far as it was run.
func (c *Call) Plugins() (names []string) {
	for _, run := range c.Runs {
		names = append(names, run.Run.Plugin)
	}
	return names
}

// ConfiguredNetwork is the network that the call's first plugin read the configuration of; empty
// if that was not seen.
func (c *Call) ConfiguredNetwork() string {
	if read := c.Runs[0].Run.Configuration; read != nil {
		return read.Network
	}
	return ""
}

// Main returns the plugin that the call's chain begins with in the configuration: the one that makes the
// interface (CNI specification, section 1). Every command of a network has the same. Of a DEL that ended
// early it is known only where the configuration is; else it is the plugin that the DEL came to.
func (c *Call) Main() string {
	ran := c.Plugins()
	switch {
	case c.Command != "DEL":
		return ran[0]
	case len(c.NeverRun) > 0:
		return c.NeverRun[len(c.NeverRun)-1]
	}
	return ran[len(ran)-1]
}
