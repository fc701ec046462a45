package timeline

import (
	"iter"
	"time"

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

// FactKind is a kind of facts.
type FactKind int

// The kinds of facts, named for their types. Whoever draws or judges facts has a table with a place for each.
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

// halt takes a sample of a process that is stopped or frozen, or goes on. What is between two samples that differ is
// divided in the middle.
func (p *process) halt(now int64, b *event.Agent) {
	middle, what := b.Since+(now-b.Since)/2, Halt{b.State, b.By}
	if p.halted != nil {
		if *p.halted.What.(*Halt) == what {
			p.halted.When.End = max(p.halted.When.End, now)
			return
		}
		p.halted.When.End = max(p.halted.When.End, middle)
		p.halted = nil
	}
	if b.State.Halted() && p.room("stops") {
		p.halted = p.keep(0, p.current().within(middle, now), &what)
	}
}

// plainFact returns the fact that an event is by itself, with when it began, and what such facts
// are called where one is dropped (Call.Cut); nil for an event that is none.
func plainFact(body event.Body) (fact *Fact, named string) {
	switch b := body.(type) {
	case *event.Setting:
		return &Fact{Thread: b.Thread, When: Interval{Start: b.Start}, What: &Setting{b}}, "sysctls"
	case *event.Mount:
		return &Fact{Thread: b.Thread, When: Interval{Start: b.Start}, What: &Mount{b}}, "mounts"
	}
	return nil, ""
}

// Activity is what is known of an image beside its facts.
type Activity struct {
	// Tallies are of everything, also of what is shorter than Options.MinSpan and so no
	// fact. Threads wait side by side, so a time may be longer than the image's own.
	Tallies [FactKinds]Tally
	// Asleep and Polling are when a thread waited for a timer, or for whatever came first;
	// disjoint, in order. Threads do so while others work: that says little by itself.
	Asleep, Polling []Interval
	// Entered is the first network namespace it went into that is not its own, and
	// Switches how often it went into one at all.
	Entered  event.Namespace
	Switches int

	latest systemCall // of the latest request or setting
}

// Tally is how often something was, and how long in all (ns).
type Tally struct {
	Count int
	Time  int64
}

func (t *Tally) add(n int, d int64) {
	t.Count += n
	t.Time += d
}

// Interval is a time from Start to End, in monotonic ns.
type Interval struct{ Start, End int64 }

func (i Interval) took() int64 { return i.End - i.Start }

// systemCall tells one from another. All requests of one share its time; and if that is
// long, a wait tells it once more.
type systemCall struct {
	thread uint32
	start  int64
}

// between is how little a program may do between two rests for them to be one: whoever
// sleeps in a loop does some hundred thousand times what says nothing.
const between = 100 * time.Microsecond

// join adds an interval to others, in order, that ended before it did, or about then.
func join(to []Interval, i Interval) []Interval {
	for len(to) > 0 && to[len(to)-1].End+int64(between) >= i.Start {
		last := to[len(to)-1]
		i.Start, i.End = min(i.Start, last.Start), max(i.End, last.End)
		to = to[:len(to)-1]
	}
	return append(to, i)
}

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
