package model

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Flight is a copy of a call in progress.
type Flight struct {
	ContainerID string
	Pod         event.Pod
	Command     string
	IfName      string
	// Plugin is the running plugin; Name its innermost command (or the plugin), in process PID, since Since (monotonic
	// ns).
	Plugin string
	Name   string
	PID    uint32
	Since  int64
	// Asks is the address of Name's open connection, Agent the process there, Asked its start (monotonic ns).
	Asks, Agent string
	Asked       int64
	// Polls is the path that a process of the plugin run polls for, or empty.
	Polls string
	Start int64
	// Operation, Trace and First identify its operation.
	Operation  Key
	Trace      event.TraceContext
	First      event.Process
	Mono, Wall int64
	Runtime    event.Runtime
}

// Flight returns the state of a call with the plugin run run.
func (op *Operation) Flight(call *Call, run *Image, runtime event.Runtime) Flight {
	inner := run
	for next := run; next != nil; next = next.Last() {
		inner = next
	}
	f := Flight{
		ContainerID: op.ContainerID, Pod: op.Pod,
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

// Connected is the first connection of a pod after its setup.
type Connected struct {
	// Flight is the call that set up the pod's network.
	Flight
	// NetNS is a network namespace that the setup entered.
	NetNS         event.Namespace
	Addresses     []string
	End, At       int64
	Local, Remote string
	// Late means that it took Options.Late of the timeline, or longer. Never: it had not come by At.
	Late, Never bool
	// Tries are those before it, Obstacles what last dropped packets of pods.
	Tries     *event.Tries
	Obstacles []event.Obstacle
	Drops     []event.Drop
}

// After is a program that an agent ran for a pod after its ADD.
type After struct {
	// Flight is the call that set up the pod's network, End its end in monotonic ns.
	Flight
	End int64
	// Image is the program; it is followed for up to a minute.
	Image *Image
}

// Run returns an image for the call's plugin, for which Image ran.
func (a After) Run() *Image { return &Image{Run: &Run{Plugin: a.Plugin, Command: a.Command}} }

// Outage is a period without a ready node network.
type Outage struct {
	Interval
	// Mono and Wall are one instant on both clocks, in ns.
	Mono, Wall int64
	// Reasons are the runtime's messages, Folder the states of the CNI directory.
	Reasons []Said
	Folder  []Said
	// Lacks are the missing parts; Overdue means that it lasted too long.
	Lacks   []Lack
	Overdue bool
	Runtime event.Runtime
}

// BringUp is a node's start: from boot (0), or from the runtime's later start, until its first pod runs.
type BringUp struct {
	Outage
	From, Since, Ready int64
	First              Start
	// Failed counts the starts before it.
	Failed int
}

// LackPod is a wait for a pod.
const LackPod event.Lack = "pod"

// Said is a text and its start time.
type Said struct {
	At   int64
	Text string
}

// Lack is a missing part and its start time.
type Lack struct {
	Said
	What event.Lack
}

// Start is a sandbox's start, from its network setup until NRI reports it, or its last program ends; or a late stop
// or removal (Request).
type Start struct {
	Flight
	Request  string
	Asked    int64  // by the runtime's span, or 0
	Mounted  int64  // network namespace, or 0
	From     int64  // of the setup
	Network  int64  // end of the last plugin
	To       int64  // the latest of Network, the programs and Reported
	Steps    []Step // by start
	Reported int64  // by NRI; 0 without
	Sandbox  *event.Sandbox
	Dropped  bool // not exported
}

// Requests to the runtime.
const (
	RunPodSandbox    = "RunPodSandbox"
	StopPodSandbox   = "StopPodSandbox"
	RemovePodSandbox = "RemovePodSandbox"
	StopContainer    = "StopContainer"
)

// Step is a program and its end.
type Step struct {
	event.Step
	End int64
}

// Failed reports whether it failed.
func (s *Step) Failed() bool { return s.Code != 0 || s.Signal != "" }

// Below lists what it ran.
func (s *Start) Below(of *Step) (all []*Step) {
	for i := range s.Steps {
		if s.Steps[i].Parent == of.Process {
			all = append(all, &s.Steps[i])
		}
	}
	return all
}
