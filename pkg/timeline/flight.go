package timeline

import "github.com/cniscope/cniscope/pkg/event"

// Flight is a run that is under way, as it stands now. It is a copy: what happens later
// does not change it.
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

// InFlight returns the calls that have a run under way, in order of their start.
func (t *Timeline) InFlight() (flights []Flight) {
	for _, op := range t.open {
		for _, call := range op.Calls {
			if run := call.live(); run != nil {
				flights = append(flights, t.flight(op.Operation, call, run))
			}
		}
	}
	return flights
}

// Overdue returns the calls that are under way for longer than Options.Hung, each once.
func (t *Timeline) Overdue() (flights []Flight) {
	if t.options.Hung <= 0 {
		return nil
	}
	for _, op := range t.open {
		for _, call := range op.Calls {
			run := call.live()
			if run == nil || call.Hung || t.now-call.Start < int64(t.options.Hung) {
				continue
			}
			call.Hung = true
			flights = append(flights, t.flight(op.Operation, call, run))
		}
	}
	return flights
}

// live returns the run of the chain that is under way; nil if none is.
func (c *Call) live() *Image {
	for _, run := range c.Runs {
		if !run.Ended {
			return run
		}
	}
	return nil
}

func (t *Timeline) flight(op *Operation, call *Call, run *Image) Flight {
	inner := run
	for next := run; next != nil; next = next.last() {
		inner = next
	}
	return Flight{
		Kind: op.Kind, ContainerID: op.ContainerID, Pod: op.Pod,
		Command: call.Command, IfName: call.IfName, Plugin: run.Run.Plugin,
		Name: inner.Name, PID: inner.PID, Since: inner.Start, Start: call.Start,
		Operation: op.Key(), Trace: call.Trace, First: call.Runs[0].Process,
		Mono: op.Mono, Wall: op.Wall, Runtime: t.runtime,
	}
}

// last returns the child that began last of those that still run; nil if none does.
func (im *Image) last() (live *Image) {
	for _, child := range im.Children {
		if !child.Ended {
			live = child
		}
	}
	return live
}
