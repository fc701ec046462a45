// Package proctracker makes events from notices of process starts, execs and exits, as from Linux' process connector
// and Windows' event tracing. A Looker reads details while the process lives.
//
// Notices may be late, disordered, repeated or lost. Events come Options.Window later, ordered, with ticks. A process
// that was gone is event.Exec.Unidentified; losses are event.Lost. The package reads no clock, and does no I/O.
package proctracker

import (
	"maps"
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
	// a new process, with its parent's program
	Began Kind = 1 + iota
	// Runs: an exec.
	Runs
	// the first thread's end, usually the process's
	Ended
)

// Notice is about one process.
type Notice struct {
	Kind Kind
	// Time is in monotonic ns.
	Time   int64
	PID    uint32
	Parent uint32
	// Code, Signal and Used are for Ended, as in event.Exit.
	Code   uint32
	Signal string
	Used   event.Usage
}

// Sight is a process's raw state.
type Sight struct {
	image.Image
	// Parent and Began (monotonic ns) are 0 if unknown.
	Parent uint32
	Began  int64
	// At is when reading began: everything is of the program that ran then.
	At   int64
	Name string
	// Stdin and NetNS are as in event.Exec.
	Stdin string
	NetNS event.Namespace

	caller event.Caller
}

// Looker reads a process at each notice, so it must be quick. There are no concurrent calls.
type Looker interface {
	// Look returns false if the process is gone; Parent, Began and Name may be set. up is the parent, 0 to read it.
	// For a stranger, which descends from no plugin, it may read only the environment: Env is empty without a CNI call.
	Look(pid, up uint32, stranger bool) (Sight, bool)
	// Caller returns why the process is trusted; may be empty.
	Caller(pid uint32) event.Caller
	// Runtime reports whether the process is the container runtime's.
	Runtime(pid uint32) bool
	// Alive reports whether a thread of the process that began then is left.
	Alive(pid uint32, began int64) bool
}

// Options of a Tracker.
type Options struct {
	// Source is event.Lost.Source.
	Source string
	// Processes bounds the followed processes, Known the remembered parents.
	Processes, Known int
	// Window is the largest disorder of notices.
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
	// LostSight: a process of a plugin's tree exited or changed too early.
	LostSight = "gone before it was looked at"
	// LostCall: the same of the runtime's child, possibly a plugin.
	LostCall = "child of the runtime gone before it was looked at"
	// LostRoom: too many followed processes.
	LostRoom = "process table full"
)

// Stats are the counters of a Tracker.
type Stats struct {
	// Known is the number of remembered parents.
	Followed, Known int
	// Missed programs exited before they were looked at.
	Looked, Missed Counts
	// Refused counts plugins of other callers, beyond their share.
	Refused uint64
	Late    uint64
	// Lost counts event.Lost by reason.
	Lost map[string]uint64
}

// Counts separate strangers.
type Counts struct{ Followed, Strangers uint64 }

// Tracker is not safe for concurrent use.
type Tracker struct {
	o    Options
	tree *tree.Tree
	// processes are the known ones by PID.
	processes map[uint32]*process
	// follows are the processes in a run.
	follows map[*process]bool
	// queue and leaving (exited processes) wait until their time has passed.
	queue   queue
	leaving []*process
	// lingering are exits of first threads before others.
	lingering []*item
	// doubted processes may have exited.
	doubted  []*process
	order    uint64
	passed   int64 // every earlier event was delivered
	swept    int64
	followed int // processes
	foreign  int // in runs that the runtime did not start
	stats    Stats
}

type process struct {
	pid, up uint32
	// began and upBegan (of the parent) are 0 if unknown.
	began, upBegan int64
	// ran (the last exec) and ended are 0 if there was none.
	ran, ended int64
	looked     int64
	// program (the last exec) and exit are set while they are queued.
	program, exit *item
	// of is nil for a stranger.
	of *root
	// guessed: its start was not notified.
	guessed bool
	// outcast: its run had no room, so it can begin none itself.
	outcast bool
}

// root is an outermost run.
type root struct {
	key event.Process
	// known is for redaction.
	known *redact.Call
	// over is the end of its first process; 0 before.
	over int64
	// foreign: the runtime did not start it.
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
	s.Lost = maps.Clone(t.stats.Lost)
	return s
}
