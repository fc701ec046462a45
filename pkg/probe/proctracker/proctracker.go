// Package proctracker makes events from mere notices: a process began, runs another program, or ended, with PID and
// time. A Looker reads the details while the process lives. It serves Linux' process connector and Windows' event
// tracing.
//
// Notices may be late, disordered, repeated or lost. A Tracker looks at a process at its notice, and delivers events
// Options.Window later, ordered by time, with ticks. It follows trusted CNI plugins and their descendants. A process
// that exited before the look keeps its place and times, and is marked event.Exec.Unidentified; losses are counted
// and reported as event.Lost.
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

// Kind is the kind of a Notice.
type Kind uint8

// The kinds of notices.
const (
	// Began: a new process, with its parent's program.
	Began Kind = 1 + iota
	// Runs: an exec.
	Runs
	// Ended: the first thread ended, and usually the process.
	Ended
)

// Notice is the system's message about one process.
type Notice struct {
	Kind Kind
	// Time is in monotonic ns.
	Time int64
	PID  uint32
	// Parent is of Began.
	Parent uint32
	// Code, Signal and Used are as in event.Exit; of Ended.
	Code   uint32
	Signal string
	Used   event.Usage
}

// Sight is the raw state of a process.
type Sight struct {
	image.Image
	// Parent is the parent's PID, Began the start in monotonic ns; 0 if unknown.
	Parent uint32
	Began  int64
	// At is when reading began. Everything is of the program that ran then.
	At int64
	// Name is the system's name, often the only remnant of an exited process.
	Name string
	// Stdin and NetNS are as in event.Exec.
	Stdin string
	NetNS event.Namespace

	caller event.Caller
}

// Looker reads a process while it lives. It must be quick, since it is called at each notice, one call at a time.
type Looker interface {
	// Look reads a process's program. It returns false if the process is gone; Parent, Began and Name may still be
	// set. up is the parent, 0 to read it also. For a stranger, which descends from no plugin, it may read only the
	// environment, and leave Env empty unless that has a CNI call.
	Look(pid, up uint32, stranger bool) (Sight, bool)
	// Caller returns why the process is trusted to be a CNI plugin; empty if it is not.
	Caller(pid uint32) event.Caller
	// Runtime reports whether the process is the container runtime's.
	Runtime(pid uint32) bool
	// Alive reports whether any thread of the process that began then is left.
	Alive(pid uint32, began int64) bool
}

// Options of a Tracker.
type Options struct {
	// Source is event.Lost.Source.
	Source string
	// Processes is the maximum of followed processes, Known of others whose parent is remembered.
	Processes, Known int
	// Window is the largest delay of a notice that is still put in order.
	Window time.Duration
	// Outlive is how long processes are followed after their run.
	Outlive   time.Duration
	Arguments arguments.Mode
	Looker    Looker
	Sink      event.Sink
}

// The reasons of event.Lost.
const (
	// LostNotices: the system dropped them.
	LostNotices = "notices lost"
	// LostSight: a process of a plugin's tree exited or changed before it was looked at.
	LostSight = "gone before it was looked at"
	// LostCall: the same of a child of the container runtime, which may have been a plugin.
	LostCall = "child of the runtime gone before it was looked at"
	// LostRoom: too many followed processes.
	LostRoom = "process table full"
)

// Stats are the counters of a Tracker.
type Stats struct {
	// Followed is the number of followed processes, Known of those whose parent is remembered.
	Followed, Known int
	// Looked counts programs that were looked at; Missed those gone before.
	Looked, Missed Counts
	// Refused counts plugins not started by the runtime, beyond their share.
	Refused uint64
	// Late counts notices that came after their turn.
	Late uint64
	// Lost counts event.Lost by reason.
	Lost map[string]uint64
}

// Counts are separate for plugins' trees and strangers.
type Counts struct{ Followed, Strangers uint64 }

// Tracker follows plugins by notices. Make it with New; it is not safe for concurrent use.
type Tracker struct {
	o    Options
	tree *tree.Tree
	// processes are the existing ones by PID, as far as notified.
	processes map[uint32]*process
	// follows are the processes in a run, existing or leaving.
	follows map[*process]bool
	// queue are future events, leaving exited processes, both until their time has passed.
	queue   queue
	leaving []*process
	// lingering are exits of first threads before others.
	lingering []*item
	// doubted must be looked up, since the notice of their end may be lost.
	doubted  []*process
	order    uint64
	passed   int64 // every earlier event was delivered
	swept    int64
	followed int // processes
	foreign  int // those in runs not started by the runtime
	stats    Stats
}

type process struct {
	pid, up uint32
	// began is its start, upBegan its parent's; 0 if unknown.
	began, upBegan int64
	// ran is the last exec, ended the notified end; 0: none.
	ran, ended int64
	// looked is the start of the last look.
	looked int64
	// program is the last exec, exit the end, while queued.
	program, exit *item
	// of is its run; nil for a stranger.
	of *root
	// guessed: its start was not notified.
	guessed bool
	// outcast: its run had no room for it or an ancestor, so it can begin no run.
	outcast bool
}

// root is an outermost run.
type root struct {
	key event.Process
	// known is for redaction.
	known *redact.Call
	// over is the end of its first process; 0 before.
	over int64
	// processes is the number followed; foreign: not started by the runtime.
	processes int
	foreign   bool
}

// New returns a Tracker without processes.
func New(o Options) *Tracker {
	return &Tracker{o: o, tree: tree.New(o.Processes), processes: map[uint32]*process{}, follows: map[*process]bool{}, stats: Stats{Lost: map[string]uint64{}}}
}

// Busy reports whether processes are followed or events queued.
func (t *Tracker) Busy() bool { return t.followed+len(t.queue)+len(t.lingering) > 0 }

// Stats returns the counters.
func (t *Tracker) Stats() Stats {
	s := t.stats
	s.Followed, s.Known = t.followed, len(t.processes)
	s.Lost = make(map[string]uint64, len(t.stats.Lost))
	for reason, n := range t.stats.Lost {
		s.Lost[reason] = n
	}
	return s
}
