package model

import (
	"iter"

	"github.com/cniscope/cniscope/pkg/event"
)

// Image is one program that a process ran.
type Image struct {
	Program
	Exit
	Run *Run
	// Images of forked processes and, for a run, those that replaced the plugin's, by start.
	Children []*Image
	// The exec, and the exit or next exec, in monotonic ns.
	Start, End  int64
	Attribution *Attribution
	// The agent that ran it, if its callers are invisible.
	By *event.Actor
	// As in event.Agent.
	In []event.Frame

	// In order of arrival. Those shorter than Operation.MinSpan are only tallied, except network changes
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
	Hidden          int // withheld arguments
	// At the fork, the caller's.
	Stack  []event.Frame
	Thread *event.ThreadSpan
	// The namespace at the exec.
	NetNS event.Namespace
	// Fingerprint of a plugin's file.
	Build    string
	InFlight bool
	// It exited before the source read it; only its name may be known.
	Unidentified bool
	// Arguments or environment exceeded their bound.
	Truncated bool
}

// Exit is an image's end and consumption.
type Exit struct {
	// False if it ran when the operation closed; Image.End is then the last known moment.
	Ended bool
	// The process executed another image, so there is no exit code.
	Replaced bool
	Unseen   bool // its end was not observed
	Outlived bool // its run
	Code     uint32
	Signal   string
	// The namespace at exit, if it differs from Program.NetNS.
	Switched event.Namespace
	// Of this image alone, in ns, exact to the scheduler's ticks.
	CPU, RunDelay int64
}

// Run marks an image that is a CNI plugin. It lasts as long as its process.
type Run struct {
	// The file's base name, and CNI_COMMAND.
	Plugin, Command string
	Configuration   *event.Configuration
	Result          *event.Result
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

// Walk calls f for im and all below it, parents first, agents' work last.
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
	// Also what is shorter than Operation.MinSpan. Threads wait in parallel, so a time may exceed the image's.
	Tallies [FactKinds]Tally
	// Times in which a thread waited for a timer, or for several events; disjoint, in order.
	Asleep, Polling []Interval
	// The first other namespace that it entered, and the number of entries.
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
