package timeline

import (
	"path"

	"github.com/cniscope/cniscope/pkg/event"
)

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

// Program is what a process began to run, and where.
type Program struct {
	PID, ParentPID uint32
	Process        event.Process
	File, Name     string
	Args           []string
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
	// By is the agent that ran it, if nobody sees who calls that one: else it is that of a connection.
	By *event.Actor

	// Facts are what it asked of the kernel and waited for, in the order in which that was
	// told. What is shorter than Options.MinSpan is only in the tallies, changes of the network
	// and waits for the kernel's own locks excepted.
	Facts []*Fact
	Activity

	used event.Usage // of the process before this image
}

// Failed says whether the image ended badly: by a signal or with an exit code.
func (im *Image) Failed() bool { return im.Code != 0 || im.Signal != "" }

func newRun(e *event.Exec) *Run {
	return &Run{Plugin: path.Base(e.File), Command: e.Call.Command, forker: e.Parent}
}

func newImage(now int64, e *event.Exec) *Image {
	return &Image{
		Program: Program{PID: e.PID, ParentPID: e.ParentPID, Process: e.Process, File: e.File, Name: e.Name, Args: e.Args, Hidden: e.Hidden, NetNS: e.NetNS, Build: e.Build, InFlight: e.InFlight, Unidentified: e.Unidentified, Truncated: e.Truncated},
		Start:   now,
		End:     now,
		used:    e.Used,
	}
}

func (im *Image) end(now int64, used event.Usage) {
	im.Ended = true
	im.End = max(now, im.Start)
	im.CPU = max(0, used.CPU-im.used.CPU)
	im.RunDelay = max(0, used.RunDelay-im.used.RunDelay)
}

func (im *Image) exit(now int64, e *event.Exit) {
	im.end(now, e.Used)
	im.Code, im.Signal, im.Unseen = e.Code, e.Signal, e.Unseen
	if e.NetNS.Key != "" && e.NetNS != im.NetNS && im.NetNS.Key != "" {
		im.Switched = e.NetNS
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

// within puts a time into that of the image, which may have begun later.
func (im *Image) within(start, end int64) Interval {
	end = max(end, im.Start)
	return Interval{min(max(start, im.Start), end), end}
}
