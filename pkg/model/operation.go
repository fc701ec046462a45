// Package model holds operations, calls, images and facts, from the timeline to the judge and the tracer.
package model

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Kind is an operation's effect on a pod's network.
type Kind string

// Kinds of operations.
const (
	Setup    Kind = "setup"    // ADD
	Teardown Kind = "teardown" // DEL
	Other    Kind = "other"    // CHECK, GC, STATUS, VERSION
)

// KindOf returns the kind of a CNI command.
func KindOf(command string) Kind {
	switch command {
	case "ADD":
		return Setup
	case "DEL":
		return Teardown
	}
	return Other
}

// Closed is why an operation was closed.
type Closed string

// Reasons to close an operation.
const (
	ClosedRunning  Closed = "sandbox running" // NRI reported it
	ClosedNext     Closed = "next operation"  // a DEL of the same container
	ClosedSettled  Closed = "settled"         // no further event
	ClosedHeld     Closed = "held too long"
	ClosedFinished Closed = "observation ended"
)

// Lineage links an operation to earlier ones.
type Lineage struct {
	// Setups of one pod (by uid), from 1; 0 if unknown. A kubelet retries with a new sandbox.
	Attempt int
	Before  []Before
}

// Gaps describe an operation's missing data.
type Gaps struct {
	// Events lost while it was open, and images dropped beyond the limit.
	Lost    uint64
	Dropped int
	// Why it is incomplete, sorted.
	Partial []string
}

// Operation is a setup or teardown, the unit of sampling and export.
type Operation struct {
	Kind        Kind
	ContainerID string
	Pod         event.Pod
	Sandbox     *event.Sandbox
	// NRI reported the sandbox running; it may have stopped since.
	Running bool
	Runtime event.Runtime
	Calls   []*Call
	// The first exec and the last exit of its runs, in monotonic ns.
	Start, End int64
	// One instant on both clocks, near Start.
	Mono, Wall int64
	Closed     Closed
	MinSpan    time.Duration
	Lineage
	Gaps
}

// Key returns the operation's key.
func (op *Operation) Key() Key {
	k := Key{Kind: op.Kind, ContainerID: op.ContainerID, Start: op.Start}
	if len(op.Calls) > 0 {
		k.First, k.Trace = op.Calls[0].Runs[0].Process, op.Calls[0].Trace
	}
	return k
}

// KeyOf returns a call's key: the operation's if the call has no parent span.
func (op *Operation) KeyOf(call *Call) Key {
	if call.Trace.Parent == "" {
		return op.Key()
	}
	return Key{
		Kind: op.Kind, ContainerID: op.ContainerID, First: call.Runs[0].Process, Start: call.Start, Trace: call.Trace,
	}
}

// Network returns the call for the pod's network, not for lo.
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

// Key identifies an operation after its end.
type Key struct {
	Kind        Kind
	ContainerID string
	First       event.Process
	Start       int64
	Trace       event.TraceContext
}

// Before is an earlier operation.
type Before struct {
	Key
	// "setup of the sandbox", "earlier teardown" or "previous attempt".
	Why string
}

// Live reports whether one of its calls is in progress.
func (op *Operation) Live() bool {
	return slices.ContainsFunc(op.Calls, func(call *Call) bool { return call.Live() != nil })
}

// Call is the plugin runs for one network, command, container and interface.
type Call struct {
	Command, IfName string
	NetNS           string
	Parent
	// Network is the network's name, NeverRun its plugins that did not start; empty if the configuration is ambiguous.
	Network  string
	NeverRun []string
	// nil if not examined.
	Programs *event.Programs
	Found    *event.Found
	// When the runtime removed the network of a sandbox that never ran, although every plugin had succeeded.
	Undone     int64
	Broken     []Step // one failed
	LockFiles  map[string]*event.LockFile
	Configured string // event.Network.Digest
	Hung       bool
	// The most other calls on the node at one time.
	Concurrent int
	// The last change of the CNI directory during the call, to 250 ms; 0 if none. The runtime then waits for running
	// calls before it starts another.
	Reconfigured int64
	// System calls were observed, at least partly.
	Seen bool
	// Dropped details: "bytes", "requests", "waits", "connections", "addresses", "sysctls", "other".
	Cut map[string]uint64
	// The pod's first connection while the operation was open. See Connected.
	First *FirstConnection
	// In order of start, each with Image.Run set.
	Runs       []*Image
	Start, End int64
}

// Parent is a call's parent span.
type Parent struct {
	// From the call's environment, or, if Told, later from the runtime.
	Trace   event.TraceContext
	Told    bool
	Baggage string
}

// FirstConnection is a pod's first TCP connection.
type FirstConnection struct {
	At            int64
	Local, Remote string
}

// Live returns the chain's running plugin, or nil.
func (c *Call) Live() *Image {
	for _, run := range c.Runs {
		if !run.Ended {
			return run
		}
	}
	return nil
}

// Plugins lists the chain's started plugins.
func (c *Call) Plugins() (names []string) {
	for _, run := range c.Runs {
		names = append(names, run.Run.Plugin)
	}
	return names
}

// ConfiguredNetwork returns the network of the first plugin's configuration, if observed.
func (c *Call) ConfiguredNetwork() string {
	if read := c.Runs[0].Run.Configuration; read != nil {
		return read.Network
	}
	return ""
}

// Main returns the first plugin of the call's configured chain, which creates the interface (CNI specification, section
// 1). If a DEL failed early without a known configuration, it is the last started plugin.
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
