// Package proctracker makes events from notices of process starts, execs and exits, as from Linux' process connector
// and Windows' event tracing. A Looker reads details from the living process.
//
// Notices may be late, disordered, repeated or lost. Events come Options.Window later, ordered, with ticks.
// event.Exec.Unidentified marks processes that were gone; losses are event.Lost.
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
	Runs
	// the first thread's exit, usually the process's
	Ended
)

// Notice is about one process.
type Notice struct {
	Kind Kind
	// monotonic ns
	Time   int64
	PID    uint32
	Parent uint32
	// for Ended, as in event.Exit
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
	// when reading began: everything is of that time's program
	At   int64
	Name string
	// as in event.Exec
	Stdin string
	NetNS event.Namespace

	caller event.Caller
}

// Looker is called at each notice, one at a time, so it must be quick.
type Looker interface {
	// Look returns false for a gone process; Parent, Began and Name may be set. up is the parent, 0 to read it. A
	// stranger descends from no plugin: only its environment is needed, empty without a CNI call.
	Look(pid, up uint32, stranger bool) (Sight, bool)
	// Caller is why the process is trusted; may be empty.
	Caller(pid uint32) event.Caller
	Runtime(pid uint32) bool
	// Alive reports whether a thread of the process that began then is left.
	Alive(pid uint32, began int64) bool
}

// Options of a Tracker.
type Options struct {
	Source string
	// bounds of followed processes and remembered parents
	Processes, Known int
	// largest disorder of notices
	Window time.Duration
	// how long processes are followed after their run
	Outlive   time.Duration
	Arguments arguments.Mode
	Looker    Looker
	Sink      event.Sink
}

// The reasons of event.Lost.
const (
	// dropped by the system
	LostNotices = "notices lost"
	// exited or changed too early, in a plugin's tree
	LostSight = "gone before it was looked at"
	// the same for children of the runtime, which may be plugins
	LostCall = "child of the runtime gone before it was looked at"
	LostRoom = "process table full"
)

// Stats are the counters of a Tracker.
type Stats struct {
	// Known counts remembered parents.
	Followed, Known int
	// Missed programs exited before the look.
	Looked, Missed Counts
	// plugins of callers other than the runtime, beyond their share
	Refused uint64
	Lost    map[string]uint64
}

// Counts has separate counts for followed processes and strangers.
type Counts struct{ Followed, Strangers uint64 }

// Tracker is not safe for concurrent use.
type Tracker struct {
	o         Options
	tree      *tree.Tree
	processes map[uint32]*process
	follows   map[*process]bool
	// queue and leaving (exited processes) wait for their time.
	queue   []*item
	leaving []*process
	// exits of first threads before others
	lingering []*item
	// processes that may have exited
	doubted  []*process
	passed   int64 // earlier events were delivered
	swept    int64
	followed int
	foreign  int // followed processes of runs that the runtime did not start
	stats    Stats

	inherited redact.Inherited
}

type process struct {
	pid, up uint32
	// upBegan is when the parent began; 0 if unknown.
	began, upBegan int64
	// time of the last exec, and of the exit; else 0
	ran, ended int64
	looked     int64
	// the last exec and the exit, while queued
	program, exit *item
	// the run that it belongs to; nil for a stranger
	of *root
	// its start was not notified
	guessed bool
	// there was no room to follow it, so it begins no run
	outcast bool
}

type root struct {
	key   event.Process
	known *redact.Call
	// time of its first process's exit, else 0
	over int64
	// number of followed processes; foreign if not started by the runtime
	processes int
	foreign   bool
}

// New returns an empty Tracker.
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

// Running is followed and has not ended.
type Running struct {
	Process event.Process
	PID     uint32
	Known   *redact.Call
}

// Running lists processes that began before that time.
func (t *Tracker) Running(before int64) (all []Running) {
	for p := range t.follows {
		if p.ended == 0 && p.began < before {
			all = append(all, Running{p.key(), p.pid, p.of.known})
		}
	}
	return all
}

// Key returns a process's key; empty if unknown.
func (t *Tracker) Key(pid uint32) event.Process {
	if p := t.processes[pid]; p != nil {
		return p.key()
	}
	return ""
}

// Tell queues an activity of a followed process.
func (t *Tracker) Tell(at int64, pid uint32, body event.Body) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.put(&item{time: at, process: p, body: body})
	}
}

// Lose queues n lost activities.
func (t *Tracker) Lose(at int64, pid uint32, reason string, n uint64) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.lose(at, reason, n, p.of)
	}
}
