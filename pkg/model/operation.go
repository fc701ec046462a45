// Package model holds operations, calls, images and facts: the timeline builds them from events, the judge and the
// tracer read them.
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
	ClosedRunning  Closed = "sandbox running"   // NRI reported it
	ClosedNext     Closed = "next operation"    // a DEL of the same container began
	ClosedSettled  Closed = "settled"           // no further event
	ClosedHeld     Closed = "held too long"     // longer than the limit
	ClosedFinished Closed = "observation ended" // end of the stream
)

// Lineage links an operation to earlier ones.
type Lineage struct {
	// Attempt counts the setups of one pod (by uid), from 1; 0 if unknown. A kubelet retries with a new sandbox.
	Attempt int
	Before  []Before
}

// Gaps are missing data.
type Gaps struct {
	// Lost counts lost events, Dropped images beyond the limit.
	Lost    uint64
	Dropped int
	// Partial lists, sorted, why it is incomplete.
	Partial []string
}

// Operation is one sandbox's setup or teardown with its calls, the unit of sampling and export.
type Operation struct {
	Kind        Kind
	ContainerID string
	Pod         event.Pod
	Sandbox     *event.Sandbox
	// Running means that NRI reported the sandbox running. It may have stopped since.
	Running bool
	Runtime event.Runtime
	// Calls are in order of start.
	Calls []*Call
	// Start and End are the first exec and the last exit of a run (monotonic ns).
	Start, End int64
	// Mono and Wall are one instant on both clocks, near Start.
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
	// First is the first call's first process, Start its start, Trace the call's parent.
	First event.Process
	Start int64
	Trace event.TraceContext
}

// Before is an earlier operation.
type Before struct {
	Key
	// Why is "setup of the sandbox", "earlier teardown" or "previous attempt".
	Why string
}

// Live reports whether one of its calls is in progress.
func (op *Operation) Live() bool {
	return slices.ContainsFunc(op.Calls, func(call *Call) bool { return call.Live() != nil })
}

// Call is the plugin runs for one network, command, container and interface.
type Call struct {
	Command, IfName string
	// NetNS is CNI_NETNS.
	NetNS string
	Parent
	// Network is the network's name, NeverRun the plugins of its chain that did not start. Both need an unambiguous
	// configuration.
	Network  string
	NeverRun []string
	// Programs are the node's plugins that cannot be started; nil if not examined.
	Programs *event.Programs
	// Undone is when the runtime began to remove the network of a sandbox that never ran, although every plugin had
	// succeeded; 0 if it did not.
	Undone int64
	// LockFiles are those that its processes polled for, by path.
	LockFiles map[string]*event.LockFile
	// Configured changes with the network's configuration (event.Network.Digest).
	Configured string
	// Hung means that it exceeded slow.hung.
	Hung bool
	// Concurrent is the maximum number of other simultaneous calls.
	Concurrent int
	// Reconfigured is the last change of the CNI directory during the call, to 250 ms, or 0. The runtime then waits for
	// running calls before it starts another.
	Reconfigured int64
	// Seen means that system calls were observed at least partly.
	Seen bool
	// Cut counts dropped details: "bytes", "requests", "waits", "connections", "addresses", "sysctls", "other".
	Cut map[string]uint64
	// First is the pod's first connection while the operation was open. See Connected.
	First *FirstConnection
	// Runs are the chain's, in order of start, with Image.Run set.
	Runs       []*Image
	Start, End int64
}

// Parent is a call's parent span.
type Parent struct {
	// Trace comes from the call's environment, or, if Told, later from the runtime.
	Trace event.TraceContext
	Told  bool
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

// Main returns the first plugin of the call's configured chain, for every command: it creates the interface (CNI
// specification, section 1). For a DEL that failed early without a known configuration it is the last started plugin.
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
