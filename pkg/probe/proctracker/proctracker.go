// Package proctracker makes events of processes where the system only notifies: a process began, runs
// another program, ended, each with a number and a time. What such a process is, runs and was told has to be
// looked up while it lives (Looker). The process connector of Linux is such a system, and so is
// event tracing of Windows.
//
// Notices may come late, out of order, twice or not at all. A Tracker looks at a process as soon as it is
// told of it, and delivers events a while later (Options.Window), in the order of their times, with
// ticks. It follows whoever is believed to be a CNI plugin, and what descends from one. Nothing is made
// up: who ended before it was looked at is in the tree by its parent and its times, and marked
// (event.Exec.Unidentified); what was missed is counted and told (event.Lost).
//
// It reads no clock, and does no I/O of its own.
package proctracker

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Kind is what a Notice is about.
type Kind uint8

// The kinds of notices.
const (
	// Began: the process is there. It runs what its parent runs.
	Began Kind = 1 + iota
	// Runs: it begins to run another program.
	Runs
	// Ended: its first thread is over, and mostly all of it.
	Ended
)

// Notice is what the system told of one process.
type Notice struct {
	Kind Kind
	// Time is when that was, in monotonic ns.
	Time int64
	PID  uint32
	// Parent is who started it; of Began.
	Parent uint32
	// Code, Signal and Used are as in event.Exit; of Ended.
	Code   uint32
	Signal string
	Used   event.Usage
}

// Sight is what was read of a process, raw.
type Sight struct {
	image.Image
	// Parent is its parent's number, Began when it began, in monotonic ns; 0 where that is not known.
	Parent uint32
	Began  int64
	// At is when reading began. All of it is of one program: the last one that ran by then.
	At int64
	// Name is what the system calls it; of what is gone often all that is left.
	Name string
	// Stdin and NetNS are as in event.Exec.
	Stdin string
	NetNS event.Namespace

	caller event.Caller
}

// Looker reads what there is to be known of a process while it lives. It is asked as soon as a notice
// comes, so it must be quick; a Tracker makes one call at a time.
type Looker interface {
	// Look reads what a process runs. It is false if that could not be read any more: Parent, Began
	// and Name may then still be known. up is its parent, 0 if that is to be read. Of a stranger, who
	// descends from no plugin, nothing else need be read if its environment tells of no CNI call; Env is
	// empty then.
	Look(pid, up uint32, stranger bool) (Sight, bool)
	// Caller says why the process is believed to be a CNI plugin; empty if it is not.
	Caller(pid uint32) event.Caller
	// Runtime reports whether the process is the container runtime's.
	Runtime(pid uint32) bool
	// Alive reports whether anything is left of the process that began then: any of its threads.
	Alive(pid uint32, began int64) bool
}

// Options of a Tracker.
type Options struct {
	// Source is what event.Lost calls it.
	Source string
	// Processes is how many are followed at once; of Known others the parent is remembered.
	Processes, Known int
	// Window is how long after its time a notice may come and still be put in order.
	Window time.Duration
	// Outlive is how long what a run left behind is followed.
	Outlive time.Duration
	// Arguments says which arguments of commands are kept.
	Arguments arguments.Mode
	Looker    Looker
	Sink      event.Sink
}

// The reasons of losses, which are event.Lost.Reason.
const (
	// LostNotices: the system could not deliver them.
	LostNotices = "notices lost"
	// LostSight: a process of a plugin's tree was gone, or ran something else, before it was looked at.
	LostSight = "gone before it was looked at"
	// LostCall: a child of the container runtime was; perhaps it was a plugin.
	LostCall = "child of the runtime gone before it was looked at"
	// LostRoom: there is no room to follow another process.
	LostRoom = "process table full"
)

// Stats is what a Tracker has counted.
type Stats struct {
	// Followed is how many processes are followed, Known of how many the parent is remembered.
	Followed, Known int
	// Looked counts programs that were looked at, of plugins' trees and of strangers; Missed those
	// of either that were gone before.
	Looked, Missed Counts
	// Refused counts plugins that the runtime did not start, beyond their share of what is followed.
	Refused uint64
	// Late counts notices that came after their turn.
	Late uint64
	// Lost counts what was told as event.Lost, by reason.
	Lost map[string]uint64
}

// Counts are of processes of plugins' trees, and of strangers.
type Counts struct{ Followed, Strangers uint64 }

// Tracker follows plugins by notices. Make it with New; it is not safe for concurrent use.
type Tracker struct {
	o    Options
	tree *tree.Tree
	// processes are those that are there, by number, in the order in which that was told.
	processes map[uint32]*process
	// follows are those of them, and of those that are leaving, that are in a run.
	follows map[*process]bool
	// queue are the events to come, leaving who has ended, both until their times have passed.
	queue   queue
	leaving []*process
	// lingering are those whose first thread ended before others.
	lingering []*item
	// doubted have to be looked for, since the notice of their end may be lost.
	doubted  []*process
	order    uint64
	passed   int64 // every notice before was delivered
	swept    int64
	followed int // processes
	foreign  int // those of them in runs that the runtime did not start
	stats    Stats
}

// process is one that is there, as far as was told.
type process struct {
	pid, up uint32
	// began is when it did, upBegan when its parent did; 0 if that is not known.
	began, upBegan int64
	// ran is when it ran another program last, ended when its end was told; 0: not yet.
	ran, ended int64
	// looked is when looking at it began, for the last time.
	looked int64
	// program is what it ran last, exit the end that was told, as long as they wait for their turn.
	program, exit *item
	// of is the run that it descends from; nil for a stranger.
	of *root
	// guessed: nobody told that it began.
	guessed bool
	// outcast: there was no room for it, or for whom it descends from, in a run. So it begins none.
	outcast bool
}

// root is a run that began outside of every other one.
type root struct {
	key event.Process
	// known is what its plugins were told, which may not leave.
	known *redact.Call
	// over is when its first process ended; 0 before.
	over int64
	// processes are those that are followed; foreign: the runtime did not start it.
	processes int
	foreign   bool
}

// New returns a Tracker that knows no process.
func New(o Options) *Tracker {
	return &Tracker{o: o, tree: tree.New(o.Processes), processes: map[uint32]*process{}, follows: map[*process]bool{}, stats: Stats{Lost: map[string]uint64{}}}
}

// Busy reports whether anything is followed, or waits for its turn.
func (t *Tracker) Busy() bool { return t.followed+len(t.queue)+len(t.lingering) > 0 }

// Stats returns what was counted so far.
func (t *Tracker) Stats() Stats {
	s := t.stats
	s.Followed, s.Known = t.followed, len(t.processes)
	s.Lost = make(map[string]uint64, len(t.stats.Lost))
	for reason, n := range t.stats.Lost {
		s.Lost[reason] = n
	}
	return s
}
