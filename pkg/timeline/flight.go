package timeline

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

// flight is a call whose innermost process is in run.
func (op *Operation) flight(call *Call, run *Image, runtime event.Runtime) Flight {
	inner := run
	for next := run; next != nil; next = next.last() {
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
		if c, is := fact.What.(*Connection); is && c.open {
			f.Asks, f.Asked = c.Address, fact.When.Start
			if c.Agent != nil {
				f.Agent = c.Agent.Name
			}
			break
		}
	}
	return f
}
