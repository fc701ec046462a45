package model

import (
	"iter"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Fact is an action or wait of an image, of one or more events.
type Fact struct {
	// When is never before the image's start.
	When   Interval
	Thread uint32
	// Attribution is set for an agent's facts.
	Attribution *Attribution
	What        What
}

// What is the content of a fact: *Wait, *Request, *Setting, *Mount, *Connection, *Detection, *Halt
// or *Missing.
type What interface{ kind() FactKind }

// Kind returns the kind.
func (f *Fact) Kind() FactKind { return f.What.kind() }

// Idly times Operation.MinSpan is the minimum duration of a sleep or plain system call with a span. A Go runtime thread
// sleeps up to 10 ms repeatedly (runtime/proc.go, sysmon), and a command's start lasts milliseconds on a busy node.
const Idly = 20

// FactKind is a kind of fact.
type FactKind int

// Kinds of facts, named for their types. The tables that draw and judge them have an entry for each.
const (
	// FactLock to FactCall are kinds of *Wait (event.WaitKind). A poll has only a tally and Activity.Polling.
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
	FactMissing
	FactKinds // the number of kinds
)

// Each yields the facts of one type, in order of arrival.
func Each[W What](facts []*Fact) iter.Seq2[*Fact, W] {
	return func(yield func(*Fact, W) bool) {
		for _, f := range facts {
			if what, is := f.What.(W); is && !yield(f, what) {
				return
			}
		}
	}
}

// Latest appends to a list of up to limit entries, which loses the oldest.
func Latest[E any](list []E, limit int, e E) []E {
	if len(list) >= limit {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, e)
}

// Setting is a written sysctl.
type Setting struct{ *event.Setting }

func (*Setting) kind() FactKind { return FactSetting }

// Mount is a slow or failed mount, move or unmount.
type Mount struct{ *event.Mount }

func (*Mount) kind() FactKind { return FactMount }

// Halt is a sampled period in which a process was stopped or frozen.
type Halt struct {
	State event.AgentState
	By    string // as in event.Agent
}

func (*Halt) kind() FactKind { return FactHalt }

// Missing is the time from the first to the last of several tries of a path, each with the same error.
type Missing struct{ *event.Missing }

func (*Missing) kind() FactKind { return FactMissing }

// Period is the mean time from one try to the next, in ns.
func (m *Missing) Period(when Interval) int64 { return when.Took() / int64(max(1, m.Count-1)) }

// reportedEvery is how often tries of a path are reported, at most (MISS_EVERY in bpf/misses.h).
const reportedEvery = int64(100 * time.Millisecond)

// Lasts reports whether the path was still polled at an instant: a later try may not have been reported yet.
func (m *Missing) Lasts(when Interval, at int64) bool {
	return at-when.End < 2*max(m.Period(when), reportedEvery)
}

// Wait is a thread's time in the kernel.
type Wait struct {
	Kind event.WaitKind
	// Name is the system call, or the mutex.
	Name string
	// Path is the lock's file.
	Path string
	// Tries is the number of attempts to lock, if more than one.
	Tries int
	// Error is the failure, if any.
	Error string
	// Holder held the lock at the start, if known.
	Holder *event.Actor
	// HolderAge is how long the holder had held the lock at the end of this wait or at its release, in ns: exact if
	// AgeExact, otherwise a minimum.
	HolderAge int64
	AgeExact  bool
	// Passed counts others that held the lock during the wait.
	Passed int
	// Blame is the plugin run that held the lock at the start, if any.
	Blame *Blame
}

func (w *Wait) kind() FactKind { return FactOf(w.Kind) }

// FactOf returns the kind of a *Wait.
func FactOf(w event.WaitKind) FactKind {
	switch w {
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

// Blame is a run that held a lock while another run waited for it.
type Blame struct {
	Call    Key
	Pod     event.Pod
	Process event.Process
	Start   int64
}

// Request is a request to the kernel with its answer.
type Request struct {
	*event.Request
	// Answer is the kernel's refusal; nil if granted or not observed.
	Answer *event.Answer
	// On is the interface's name, Under its new parent's, if known.
	On, Under string
}

func (r *Request) kind() FactKind {
	if r.Query() {
		return FactQuery
	}
	return FactChange
}

// Errno returns the kernel's refusal, if any.
func (r *Request) Errno() string {
	if r.Answer != nil {
		return r.Answer.Error
	}
	return r.Error
}

// Failed reports a failure, except of a test for existence.
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

// AnsweredBy reports whether a answers the request or one of its messages.
func (r *Request) AnsweredBy(a *event.Answer) bool {
	return a.Port == r.Port && a.Sequence-r.Sequence < uint32(max(1, r.Count))
}

// Detection is duplicate address detection from the request for the address, or its first tentative state, until the
// process learned the result.
type Detection struct {
	NetNS   event.Namespace
	Index   uint32
	Address string
	On      string
	// State is the result; AddressTentative if the process did not await it.
	State event.AddressState
}

func (*Detection) kind() FactKind { return FactDetection }

// Evidence is how certain an agent's work for a call is.
type Evidence string

// Degrees of evidence.
const (
	// Certain work mentions the container, the pod, its namespace, interface or address.
	Certain Evidence = "certain"
	// Candidate means only that the agent had a connection at the time.
	Candidate Evidence = "candidate"
)

// Attribution is why an agent's work belongs to a call.
type Attribution struct {
	Evidence Evidence
	// Periodic means that the agent also does this without connections.
	Periodic bool
	// Others are other possible calls.
	Others []Key
}
