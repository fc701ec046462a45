package model

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Connection is one connect(2), or a series of refused attempts at one address: from connect until close; of
// refused attempts from the first to the last, or to the one that was not refused. Or it is one Exchange.
type Connection struct {
	// Network is "unix" or "tcp"; Address a path or "address:port".
	Network, Address string
	// Error is why there was no connection, the last time, and Tries how often it was tried; of an
	// exchange why it never had an answer.
	Error string
	Tries int
	// Agent is who answered, or else who made the socket that listens; nil if it is not
	// known. Answered tells which.
	Agent    *event.Actor
	Answered bool
	// Work is what the agent did meanwhile; nil if that is not known.
	Work *Work
	// Exchange says more of one exchange on a standing stream; nil of a connection that was made.
	Exchange *Exchange
	// Exchanged is how many exchanges on this connection were told. Each is a fact of its own, and
	// what was waited for; this one is only open meanwhile.
	Exchanged int
	// Open: it is not closed yet.
	Open bool
}

func (*Connection) kind() FactKind { return FactConnection }

// Exchange is what an agent, or who one waits for, said to another process on a stream that was there
// before, until that one answered (event.Exchange). The fact is a Connection whose interval is this one
// wait, and whose Agent is who has the other end.
type Exchange struct {
	// Unasked: the peer spoke by itself, which is weak evidence that it was waited for.
	Unasked bool
	// Clipped: it began before the caller's connection, or before anybody looked; the fact's
	// interval begins with the connection.
	Clipped bool
	// Receipt: what was written may only have acknowledged what was read there just before, so that nothing
	// was waited for.
	Receipt bool
	// Asked is when it wrote there once more during the call, where it was Clipped or a Receipt before: that is
	// a question, and the first of them that was told. 0: it did not.
	Asked int64
	// Unended: nobody told its end before the call was over, so whoever called had an answer
	// without it. The fact's interval ends when it was last told.
	Unended bool
}

// Work is what an agent did while a call had a connection to it. Neither image is a process
// of the call: their children and facts are what was done.
type Work struct {
	// Own was done for this call: certainly, or as far as is known since it was the only
	// one that had a connection to the agent.
	Own *Image
	// Shared was done while other calls had a connection, too, or is what the agent does
	// periodically: for whom is not known. It is drawn below one of the calls.
	Shared *Image
	// CPU is how long the agent itself ran (ns), exact to a tick of 10 ms. Channel, only in old
	// recordings, is the kernel function that its first thread was asleep in when it was last sampled.
	CPU     int64
	Channel string
	// States is what the agent was found doing during the connection, in order; nil in old
	// recordings. See Spent.
	States []Spell
	// Gone is when the agent exited while the connection was open; 0 if it did not.
	Gone int64
	// Killed is "OOM" if the kernel killed it for want of memory.
	Killed string
	// Successor is who answered later in its place, and Back when that connection began; nil if nobody did.
	Successor *event.Actor
	Back      int64
	// Meanwhile is what else the agent did during the connection, longest first.
	Meanwhile []Meanwhile
}

// Meanwhile is something that an agent did while a call had a connection to it, and that is not drawn below
// this connection: it was done for another call, or nobody knows for which. Either Image or Fact is set.
type Meanwhile struct {
	// When it was, within the connection.
	When Interval
	// Image is what it ran, Fact what it asked or waited for.
	Image *Image
	Fact  *Fact
	// Attribution is the evidence as seen from this call: Others are the calls that it may have
	// been for beside this one.
	Attribution
	// Perhaps: it may have been for this call, or for none. Else it only overlaps: the evidence is
	// another call's, or it began before the connection and after another one.
	Perhaps bool
}

// Spell is a time in which an agent was found in one state.
type Spell struct {
	Interval
	State event.AgentState
	// Channel is the kernel function that a thread of that state waited in; empty if it ran.
	Channel string
	// By is what stopped or froze it, as in event.Agent.
	By string
}

// During returns the parts of spells that lie within an interval.
func During(all []Spell, when Interval) (some []Spell) {
	for _, one := range all {
		one.Start, one.End = max(one.Start, when.Start), min(one.End, when.End)
		if one.Took() > 0 {
			some = append(some, one)
		}
	}
	return some
}

// Spent is how long in all an agent was in one state (ns).
type Spent struct {
	State event.AgentState
	Time  int64
	// Channel is the kernel function that it waited in longest; empty if it is not known.
	Channel string
	// By is what stopped or froze it last, as in event.Agent.
	By string
}

// Spent adds up, longest first, in which states the agent was within an interval. What they leave of it
// is not known.
func (w *Work) Spent(when Interval) (all []Spent) {
	in, by := map[event.AgentState]map[string]int64{}, map[event.AgentState]string{}
	for _, one := range During(w.States, when) {
		if in[one.State] == nil {
			in[one.State] = map[string]int64{}
			all = append(all, Spent{State: one.State})
		}
		in[one.State][one.Channel] += one.Took()
		if one.By != "" {
			by[one.State] = one.By
		}
	}
	for i := range all {
		s, longest := &all[i], int64(0)
		s.By = by[s.State]
		for channel, took := range in[s.State] {
			s.Time += took
			if took > longest || took == longest && channel < s.Channel {
				s.Channel, longest = channel, took
			}
		}
	}
	slices.SortFunc(all, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.State, b.State))
	})
	return all
}
