package model

import (
	"iter"

	"github.com/cniscope/cniscope/pkg/event"
)

// Fact is one thing that an image did or waited for, joined from one event or from several.
type Fact struct {
	// When it was, in monotonic ns: never before the image began.
	When   Interval
	Thread uint32
	// Attribution is how it came to belong to the call, if an agent did it; else nil.
	Attribution *Attribution
	What        What
}

// What is what a fact says: one of *Wait, *Request, *Setting, *Mount, *Connection, *Detection and *Halt.
type What interface{ kind() FactKind }

// Kind returns what kind of fact it is.
func (f *Fact) Kind() FactKind { return f.What.kind() }

// Idly is how many times Operation.MinSpan a sleep, or a system call of no further interest, lasts at least that
// is worth a span of its own. A thread of the Go runtime sleeps for up to 10 ms again and again while the program
// works (runtime/proc.go, sysmon); to start a command takes its parent some milliseconds on a busy node.
const Idly = 20

// FactKind is a kind of facts.
type FactKind int

// The kinds of facts, named for their types. The tables that draw and judge facts have a place for each.
const (
	// FactLock, FactMutex, FactSleep, FactPoll and FactCall are those of *Wait (event.WaitKind). A poll has a
	// tally, and a place in Activity.Polling, but is never kept by itself.
	FactLock FactKind = iota
	FactMutex
	FactSleep
	FactPoll
	FactCall
	// FactChange is a *Request that changes the network, FactQuery one that does not.
	FactChange
	FactQuery
	FactSetting
	FactMount
	FactConnection
	FactDetection
	FactHalt
	FactKinds // how many there are
)

// Each yields the facts of one type, in the order in which they were told.
func Each[W What](facts []*Fact) iter.Seq2[*Fact, W] {
	return func(yield func(*Fact, W) bool) {
		for _, f := range facts {
			if what, is := f.What.(W); is && !yield(f, what) {
				return
			}
		}
	}
}

// Setting is a sysctl that was written.
type Setting struct{ *event.Setting }

func (*Setting) kind() FactKind { return FactSetting }

// Mount is a file system that was mounted, moved or taken away, which took long or failed.
type Mount struct{ *event.Mount }

func (*Mount) kind() FactKind { return FactMount }

// Halt is a time in which a process was stopped or frozen. It is sampled.
type Halt struct {
	State event.AgentState
	By    string // as in event.Agent
}

func (*Halt) kind() FactKind { return FactHalt }

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

// Blame is a run that held a lock for which another run waited.
type Blame struct {
	// Call is what its call is known by.
	Call Key
	Pod  event.Pod
	// Process is the run's, and Start when it began (monotonic ns).
	Process event.Process
	Start   int64
}

// Request is what was asked of the kernel, with its answer.
type Request struct {
	*event.Request
	// Answer is the kernel's refusal; nil if it granted the request, or if it was not seen.
	Answer *event.Answer
	// On is the name of the interface it is about, Under that of the one it is put under;
	// empty where only an index is known.
	On, Under string
}

func (r *Request) kind() FactKind {
	if r.Query() {
		return FactQuery
	}
	return FactChange
}

// Errno is what the kernel refused the request with; empty if it did not.
func (r *Request) Errno() string {
	if r.Answer != nil {
		return r.Answer.Error
	}
	return r.Error
}

// Failed tells a request that should have been granted from one that only tried whether something is there.
func (r *Request) Failed() bool {
	switch r.Errno() {
	case "":
		return false
	case "EEXIST":
		return !r.Exclusive
	case "ENOENT", "ESRCH", "ENODEV", "ENXIO", "EADDRNOTAVAIL":
		return r.Verb != event.VerbQuery && r.Verb != event.VerbDelete
	}
	return true
}

// AnsweredBy tells whether a is the answer, or that to one of several messages of a kind.
func (r *Request) AnsweredBy(a *event.Answer) bool {
	return a.Port == r.Port && a.Sequence-r.Sequence < uint32(max(1, r.Count))
}

// Detection is duplicate address detection, as far as a process looked how it went on: from when the address
// was asked for, or first seen tentative, until the process was told what came of it.
type Detection struct {
	NetNS   event.Namespace
	Index   uint32
	Address string
	// On is the interface's name; empty if it is not known.
	On string
	// State is what came of it; AddressTentative if the process did not wait for that.
	State event.AddressState
}

func (*Detection) kind() FactKind { return FactDetection }

// Evidence is how sure it is that an agent did something for a call.
type Evidence string

// The evidence there can be.
const (
	// Certain: it mentions the container, the pod, its namespace, interface or address.
	Certain Evidence = "certain"
	// Candidate: it was done while the agent had a connection, which proves nothing.
	Candidate Evidence = "candidate"
)

// Attribution says why something that an agent ran or did is said to be a call's.
type Attribution struct {
	Evidence Evidence
	// Periodic: the agent runs this also while it has no connection.
	Periodic bool
	// Others are the calls it may have been done for as well.
	Others []Key
}

// Plain returns the fact that an event is by itself, with when it began, and what such facts
// are called where one is dropped (Call.Cut); nil for an event that is none.
func Plain(body event.Body) (fact *Fact, named string) {
	switch b := body.(type) {
	case *event.Setting:
		return &Fact{Thread: b.Thread, When: Interval{Start: b.Start}, What: &Setting{Setting: b}}, "sysctls"
	case *event.Mount:
		return &Fact{Thread: b.Thread, When: Interval{Start: b.Start}, What: &Mount{Mount: b}}, "mounts"
	}
	return nil, ""
}
