package model

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Flight is a run that is under way, as it stands now. It is a copy: what happens later does not change it.
type Flight struct {
	Kind        Kind
	ContainerID string
	Pod         event.Pod
	Command     string
	IfName      string
	// Plugin is the run's plugin; what it runs innermost is Name, in process PID, since
	// Since (monotonic ns). Of a plugin that runs no command that is the plugin itself.
	Plugin string
	Name   string
	PID    uint32
	Since  int64
	// Asks is the address of the connection that Name has open, Agent who answers there, since Asked
	// (monotonic ns). Empty if it has none.
	Asks, Agent string
	Asked       int64
	// Start is when the call began, in monotonic ns.
	Start int64
	// Call and Operation are what it will be part of.
	Operation Key
	Trace     event.TraceContext
	First     event.Process
	// Mono and Wall are the operation's instant on both clocks.
	Mono, Wall int64
	Runtime    event.Runtime
}

// Flight is how a call stands, whose innermost process is in run.
func (op *Operation) Flight(call *Call, run *Image, runtime event.Runtime) Flight {
	inner := run
	for next := run; next != nil; next = next.Last() {
		inner = next
	}
	f := Flight{
		Kind: op.Kind, ContainerID: op.ContainerID, Pod: op.Pod,
		Command: call.Command, IfName: call.IfName, Plugin: run.Run.Plugin,
		Name: inner.Name, PID: inner.PID, Since: inner.Start, Start: call.Start,
		Operation: op.Key(), Trace: call.Trace, First: call.Runs[0].Process,
		Mono: op.Mono, Wall: op.Wall, Runtime: runtime,
	}
	for _, fact := range slices.Backward(inner.Facts) {
		if c, is := fact.What.(*Connection); is && c.Open {
			f.Asks, f.Asked = c.Address, fact.When.Start
			if c.Agent != nil {
				f.Agent = c.Agent.Name
			}
			break
		}
	}
	return f
}

// Connected is the first connection of a pod whose setup is over already: what it was called for.
type Connected struct {
	// Flight is the call that made the pod's network.
	Flight
	// End is when that was over, At when the connection was there: monotonic ns.
	End, At       int64
	Local, Remote string
}

// After is a program that an agent ran for a pod whose ADD had returned: what the pod is given is not whole before.
type After struct {
	// Flight is the call that made the pod's network, End when that was over: monotonic ns.
	Flight
	End int64
	// Image is the program. It has not ended if a minute was not enough.
	Image *Image
}

// Run is an image that stands for the call's plugin, which Image was run for.
func (a After) Run() *Image { return &Image{Run: &Run{Plugin: a.Plugin, Command: a.Command}} }

// Outage is a time in which the node's network was not ready.
type Outage struct {
	Interval
	// Mono and Wall are one instant on both clocks, in ns.
	Mono, Wall int64
	// Reasons are what the runtime said, and Folder what the CNI folder held, each when that changed.
	Reasons []Said
	Folder  []Said
	// Lacks are what was missing, each when that changed, and Overdue says that it took too long.
	Lacks   []Lack
	Overdue bool
	Runtime event.Runtime
}

// Said is a text, and since when it was so.
type Said struct {
	At   int64
	Text string
}

// Lack is what was missing, and since when it was.
type Lack struct {
	Said
	What event.Lack
}
