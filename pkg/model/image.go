package model

import (
	"iter"

	"github.com/cniscope/cniscope/pkg/event"
)

// Image is one program that a process ran.
type Image struct {
	Program
	Exit
	// Run is set for a plugin or a delegated plugin.
	Run *Run
	// Children are the images of forked processes and, for a run, those that replaced the plugin's, by start.
	Children []*Image
	// Start is the exec, End the exit or next exec, in monotonic ns.
	Start, End int64
	// Attribution is set if an agent ran it for the call.
	Attribution *Attribution
	// By is the agent that ran it if its callers are invisible; otherwise the connection names it.
	By *event.Actor

	// Facts are in order of arrival. Those shorter than Operation.MinSpan are only in the tallies, except network changes
	// and waits for kernel locks.
	Facts []*Fact
	Activity
}

// Program is an executed program.
type Program struct {
	PID, ParentPID  uint32
	Process, Parent event.Process
	File, Name      string
	Args            []string
	Hidden          int
	// Stack is the parent's at the fork (event.Fork.Stack).
	Stack []event.Frame
	// NetNS is at the exec.
	NetNS event.Namespace
	// Build is a fingerprint of a plugin's file.
	Build    string
	InFlight bool
	// Unidentified means that it exited before the source could read it, so only its name may be known.
	Unidentified bool
	// Truncated means arguments or environment beyond their bound.
	Truncated bool
}

// Exit is the end of an image with its consumption.
type Exit struct {
	// Ended is false if it still ran when the operation closed. Image.End is then the last known moment.
	Ended bool
	// Replaced means that the process executed another image, so there is no exit code.
	Replaced bool
	Unseen   bool
	Outlived bool
	Code     uint32
	Signal   string
	// Switched is the network namespace at exit, if another.
	Switched event.Namespace
	// CPU and RunDelay are of this image alone, in ns, exact to the scheduler's ticks.
	CPU, RunDelay int64
}

// Run marks an image that is a CNI plugin. It lasts as long as the process.
type Run struct {
	// Plugin is the file's base name, Command CNI_COMMAND.
	Plugin, Command string
	// Configuration and Result are its input and output; nil if not observed.
	Configuration *event.Configuration
	Result        *event.Result
}

// Failed reports an exit by signal or with a nonzero code.
func (im *Image) Failed() bool { return im.Code != 0 || im.Signal != "" }

// Last returns the running child that started last, or nil.
func (im *Image) Last() (live *Image) {
	for _, child := range im.Children {
		if !child.Ended {
			live = child
		}
	}
	return live
}

// Walk calls f for im and all below it, parents first and agents' work last.
func (im *Image) Walk(f func(*Image)) {
	f(im)
	im.walkBelow(f)
}

func (im *Image) walkBelow(f func(*Image)) {
	for _, child := range im.Children {
		child.Walk(f)
	}
	for w := range im.Works() {
		w.Own.walkBelow(f)
		w.Shared.walkBelow(f)
	}
}

// Works yields the agents' work for im itself.
func (im *Image) Works() iter.Seq[*Work] {
	return func(yield func(*Work) bool) {
		for _, c := range Each[*Connection](im.Facts) {
			if c.Work != nil && !yield(c.Work) {
				return
			}
		}
	}
}

// Activity sums up an image's behavior.
type Activity struct {
	// Tallies also count what is shorter than Operation.MinSpan. Threads wait in parallel, so a time may exceed the
	// image's.
	Tallies [FactKinds]Tally
	// Asleep and Polling are times in which a thread waited for a timer or for several events; disjoint, in order.
	Asleep, Polling []Interval
	// Entered is the first other network namespace, Switches the number of entries.
	Entered  event.Namespace
	Switches int
}

// Tally is a number and a total time in ns.
type Tally struct {
	Count int
	Time  int64
}

// Add adds n occurrences of d ns in total.
func (t *Tally) Add(n int, d int64) {
	t.Count += n
	t.Time += d
}

// Interval is from Start to End, in monotonic ns.
type Interval struct{ Start, End int64 }

// Took returns the duration in ns.
func (i Interval) Took() int64 { return i.End - i.Start }
