package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Wait is a time in which a thread was blocked in the kernel.
type Wait struct {
	Kind event.WaitKind
	// Name is the system call, or of a mutex its name.
	Name string
	// Path is the lock's file.
	Path string
	// Tries is how often a lock was asked for, if it took several times.
	Tries int
	// Error is why it ended in vain; empty if it did not.
	Error string
	// Holder is the process that held the lock when the wait began; nil if not known.
	Holder *event.Actor
	// HolderAge is how long the holder had the lock until this wait ended, or until it
	// let go (ns): exactly, or at least.
	HolderAge int64
	AgeExact  bool
	// Passed is how many other processes were seen to hold the lock during the wait.
	Passed int
	// Blame is the run of a plugin that had it when the wait began; nil if it was none.
	Blame *Blame

	suspect *suspect
}

func (w *Wait) kind() FactKind {
	switch w.Kind {
	case event.WaitLock:
		return FactLock
	case event.WaitMutex:
		return FactMutex
	case event.WaitSleep:
		return FactSleep
	case event.WaitPoll:
		return FactPoll
	}
	return FactCall
}

const (
	// Idly is how many times Options.MinSpan a sleep, or a system call of no further
	// interest, lasts at least that is worth a span of its own. A thread of the Go runtime
	// sleeps for up to 10 ms again and again while the program works (runtime/proc.go,
	// sysmon); to start a command takes its parent some milliseconds on a busy node.
	Idly = 20
	// idleMax bounds the times in which threads of one image slept, or polled.
	idleMax = 4096
	// retry is how long after a lock was refused the next attempt still belongs to the
	// same wait: iptables asks again every second (iptables(8), --wait-interval).
	retry = 2 * time.Second
	// triesMax bounds the locks that one process is seen to retry.
	triesMax = 8
)

// try is a series of refused attempts to take a lock.
type try struct {
	wait   *Wait
	thread uint32
	when   Interval
	over   int64 // when the last attempt was refused
}

// Blame is a run that held a lock for which another run waited.
type Blame struct {
	// Call is what its call is known by.
	Call Key
	Pod  event.Pod
	// Process is the run's, and Start when it began (monotonic ns).
	Process event.Process
	Start   int64
}

// suspect is a run that holds or held a lock. Once its operation is over, only its name is kept.
type suspect struct {
	op    *Operation
	call  *Call
	run   *Image
	blame *Blame
}

// known returns the run's name; nil as long as it may still change, since what is above
// its call may be told when that is over.
func (s *suspect) known(told bool) *Blame {
	if s.blame != nil || told && s.call.Trace.Parent == "" {
		return s.blame
	}
	return s.name()
}

func (s *suspect) name() *Blame {
	return &Blame{Call: s.op.keyOf(s.call), Pod: s.op.Pod, Process: s.run.Process, Start: s.run.Start}
}
