package model

import (
	"iter"

	"github.com/cniscope/cniscope/pkg/event"
)

// Image is one program that one process ran.
type Image struct {
	Program
	Exit
	// Run is set where the image is a plugin or a delegate.
	Run *Run
	// Children are the images of the processes forked by this one, and of a run also
	// those that replaced the plugin's own, in order of their start.
	Children []*Image
	// Start is the exec, End the exit or the next exec. Monotonic ns.
	Start, End int64
	// Attribution is how it came to belong to the call, if an agent ran it; of what it runs
	// in its turn, its own counts.
	Attribution *Attribution
	// By is the agent that ran it, if that agent's callers are invisible; otherwise it is that of a connection.
	By *event.Actor

	// Facts are what it asked of the kernel and waited for, in the order in which that was
	// told. What is shorter than Operation.MinSpan is only in the tallies, changes of the network
	// and waits for the kernel's own locks excepted.
	Facts []*Fact
	Activity
}

// Program is what a process began to run, and where.
type Program struct {
	PID, ParentPID uint32
	// Process is what runs it, Parent what forked that.
	Process, Parent event.Process
	File, Name      string
	Args            []string
	// Hidden is how many arguments were kept back.
	Hidden int
	// NetNS is the network namespace at exec.
	NetNS event.Namespace
	// Build is a fingerprint of a plugin's file; empty if nobody looked.
	Build string
	// InFlight: it ran before cniscope did.
	InFlight bool
	// Unidentified: it ended before the source could look at it; its name is known at most.
	Unidentified bool
	// Truncated: arguments or environment were longer than is read.
	Truncated bool
}

// Exit is how an image ended, and what it had consumed by then.
type Exit struct {
	// Ended is false for what still ran when the operation was closed; Image.End is then
	// the last moment that is known of.
	Ended bool
	// Replaced: the process went on with another image; there is no exit code.
	Replaced bool
	// Unseen: the end was not observed.
	Unseen bool
	// Outlived: it went on after its run was over.
	Outlived bool
	Code     uint32
	Signal   string
	// Switched is the network namespace at exit, where it is not Program.NetNS.
	Switched event.Namespace
	// CPU and RunDelay of this image alone, in ns; bounds, since the clocks of the
	// scheduler are brought up to date by its ticks.
	CPU, RunDelay int64
}

// Run marks an image that is a CNI plugin: its extent is its whole process.
type Run struct {
	// Plugin is the base name of the plugin's file, Command its CNI_COMMAND.
	Plugin, Command string
	// Configuration and Result are what it read and wrote, whichever of its processes did
	// that; nil if it was not seen.
	Configuration *event.Configuration
	Result        *event.Result
}

// Failed says whether the image ended badly: by a signal or with an exit code.
func (im *Image) Failed() bool { return im.Code != 0 || im.Signal != "" }

// Last returns the child that began last of those that still run; nil if none does.
func (im *Image) Last() (live *Image) {
	for _, child := range im.Children {
		if !child.Ended {
			live = child
		}
	}
	return live
}

// Walk calls f for im and everything below it, parents first; what agents did for it comes last.
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

// Works yields what agents did for im itself.
func (im *Image) Works() iter.Seq[*Work] {
	return func(yield func(*Work) bool) {
		for _, c := range Each[*Connection](im.Facts) {
			if c.Work != nil && !yield(c.Work) {
				return
			}
		}
	}
}

// Activity is what is known of an image beside its facts.
type Activity struct {
	// Tallies are of everything, also of what is shorter than Operation.MinSpan and so no
	// fact. Threads wait side by side, so a time may be longer than the image's own.
	Tallies [FactKinds]Tally
	// Asleep and Polling are when a thread waited for a timer, or for whatever came first;
	// disjoint, in order. Threads do so while others work: that says little by itself.
	Asleep, Polling []Interval
	// Entered is the first network namespace it went into that is not its own, and
	// Switches how often it went into one at all.
	Entered  event.Namespace
	Switches int
}

// Tally is how often something was, and how long in all (ns).
type Tally struct {
	Count int
	Time  int64
}

// Add counts n more, which took d ns.
func (t *Tally) Add(n int, d int64) {
	t.Count += n
	t.Time += d
}

// Interval is a time from Start to End, in monotonic ns.
type Interval struct{ Start, End int64 }

// Took is how long it lasted, in ns.
func (i Interval) Took() int64 { return i.End - i.Start }
