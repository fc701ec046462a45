package timeline

import (
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
	// Lost is how many events of this operation, or of a time it was open in, never
	// arrived.
	Lost uint64
	// Attempt counts the setups of one pod (by its uid), from 1; 0 where it is not known.
	// A kubelet tries again with a new sandbox when one fails.
	Attempt int
	// Before are the operations that this one follows on.
	Before []Before
	// Dropped is how many images were not kept because the operation has more than
	// the limit.
	Dropped int
	// Partial says, sorted, why the operation may not be all there was. Empty if it is.
	Partial []string
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

// Key returns what op is known by.
func (op *Operation) Key() Key {
	k := Key{Kind: op.Kind, ContainerID: op.ContainerID, Start: op.Start}
	if len(op.Calls) > 0 {
		k.First, k.Trace = op.Calls[0].Runs[0].Process, op.Calls[0].Trace
	}
	return k
}

// keyOf is what a call of op is known by afterwards: where there is nothing above it, as
// its operation.
func (op *Operation) keyOf(call *Call) Key {
	if call.Trace.Parent == "" {
		return op.Key()
	}
	return Key{Kind: op.Kind, ContainerID: op.ContainerID, First: call.Runs[0].Process, Start: call.Start, Trace: call.Trace}
}

// Call is the runs of one network for one command, container and interface.
type Call struct {
	Command, IfName string
	// NetNS is the path in CNI_NETNS.
	NetNS string
	// Trace is what the call hangs under: what its environment says, else, and then Told
	// is set, what the runtime told when the call was over.
	Trace event.TraceContext
	Told  bool
	// Network is the network's name, and NeverRun the plugins of its chain whose
	// turn never came: both only where the configuration leaves no doubt.
	Network  string
	NeverRun []string
	// Hung: it was under way for longer than Options.Hung, and that was said.
	Hung bool
	// Concurrent is the most other calls of the node that were under way at one instant of
	// this one.
	Concurrent int
	// Reconfigured is about when the CNI folder changed while the call was under way; 0 if it did
	// not. The runtime reads it again then, and no call begins before those that run are
	// over.
	Reconfigured int64
	// Seen: the inside of its processes was looked at, at least for a part of the time.
	Seen bool
	// Cut is how much of what its processes did was not kept, by what it is: "bytes",
	// "requests", "waits", "connections", "addresses", "sysctls", "other". Nil if all was.
	Cut map[string]uint64
	// First is the first connection of the pod; nil if it did not come while the operation
	// was open. See Timeline.Connected.
	First *FirstConnection
	// Runs of the chain, in order of their start. Each has Image.Run set.
	Runs       []*Image
	Start, End int64
}

// Run marks an image that is a CNI plugin: its extent is its whole process.
type Run struct {
	// Plugin is the base name of the plugin's file, Command its CNI_COMMAND.
	Plugin, Command string
	// Configuration and Result are what it read and wrote, whichever of its processes did
	// that; nil if it was not seen.
	Configuration *event.Configuration
	Result        *event.Result

	forker event.Process
}

// Image is one program that one process ran.
type Image struct {
	PID, ParentPID uint32
	Process        event.Process
	File, Name     string
	Args           []string
	Hidden         int
	// NetNS is the namespace at exec; Switched the one at exit, where it differs.
	NetNS, Switched event.Namespace
	// Run is set where the image is a plugin or a delegate.
	Run *Run
	// Children are the images of the processes forked by this one, and of a run also
	// those that replaced the plugin's own, in order of their start.
	Children []*Image

	// Start is the exec, End the exit or the next exec. Monotonic ns.
	Start, End int64
	// Ended is false for what still ran when the operation was closed; End is then
	// the last moment that is known of.
	Ended bool
	// Replaced: the process went on with another image; there is no exit code.
	Replaced bool
	// Unseen: the end was not observed.
	Unseen bool
	Code   uint32
	Signal string
	// CPU and RunDelay of this image alone, in ns; bounds, since the clocks of the
	// scheduler are brought up to date by its ticks.
	CPU, RunDelay int64
	// Outlived: it went on after its run was over.
	Outlived bool
	// InFlight: it ran before cniscope did.
	InFlight bool
	// Truncated: arguments or environment were longer than is read.
	Truncated bool

	// Attribution is how it came to belong to the call, if a server ran it; of what it runs
	// in its turn, its own counts.
	Attribution *Attribution

	// Facts are what it asked of the kernel and waited for, in the order in which that was
	// told. What is shorter than Options.MinSpan is only in the tallies, changes of the network
	// and waits for the kernel's own locks excepted.
	Facts []*Fact
	Activity

	used event.Usage // of the process before this image
}

// Failed says whether the image ended badly: by a signal or with an exit code.
func (im *Image) Failed() bool { return im.Code != 0 || im.Signal != "" }

// Walk calls f for im and everything below it, parents first; what servers did for it
// comes last.
func (im *Image) Walk(f func(*Image)) {
	f(im)
	im.walkBelow(f)
}

func (im *Image) walkBelow(f func(*Image)) {
	for _, child := range im.Children {
		child.Walk(f)
	}
	im.works(func(w *Work) {
		w.Own.walkBelow(f)
		w.Shared.walkBelow(f)
	})
}

// works calls f for what servers did for the image.
func (im *Image) works(f func(*Work)) {
	for _, c := range Each[*Connection](im.Facts) {
		if c.Work != nil {
			f(c.Work)
		}
	}
}
