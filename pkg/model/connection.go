package model

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Connection is one connect(2) until its close, one Exchange, or a series of refused attempts at one address until the
// first success.
type Connection struct {
	// Network and Address are as in event.Connect.
	Network, Address string
	// Error is the last failure to connect, Tries the number of attempts; for an exchange, why there is no answer.
	Error string
	Tries int
	// Agent answered (Answered) or created the listening socket; nil if unknown.
	Agent    *event.Actor
	Answered bool
	Work     *Work
	Exchange *Exchange
	// Exchanged counts the exchanges on this connection, which are separate facts.
	Exchanged int
	Open      bool
}

func (*Connection) kind() FactKind { return FactConnection }

// Exchange is one request of an agent, or of a process it waits for, on an existing stream until the answer
// (event.Exchange). The fact's interval is the wait, its Agent the other end.
type Exchange struct {
	// Unasked means that the peer sent without a request, which is weak evidence for a wait.
	Unasked bool
	// Clipped means that it began before the caller's connection, where the interval begins, or before the observation.
	Clipped bool
	// Receipt means that the written data may only acknowledge a read, so there was no wait.
	Receipt bool
	// Asked is the time of the first later write during the call if the exchange was Clipped or a Receipt; 0 if there is
	// none. Such a write is a request.
	Asked int64
	// Unended means that the call ended first, so it did not need the answer. The interval ends with the last report.
	Unended bool
}

// Work is an agent's work during a call's connection: the children and facts of Own and Shared, which are no processes
// of the call.
type Work struct {
	// Own is work for this call: certain, or of the only call connected to the agent.
	Own *Image
	// Shared is work of unknown purpose: other calls were connected, or it is periodic. It is drawn below one call.
	Shared *Image
	// CPU is the agent's CPU time (ns), to 10 ms. Channel, only in old recordings, is the kernel function its main thread
	// last slept in.
	CPU     int64
	Channel string
	// States are the agent's, in order; nil in old recordings. See Spent.
	States []Spell
	// Gone is the time of the agent's exit during the connection, or 0.
	Gone int64
	// Killed is "OOM" if the kernel killed it for lack of memory.
	Killed string
	// Successor is the process that answered later at the same address, Back the start of that connection.
	Successor *event.Actor
	Back      int64
	// Meanwhile is its other work during the connection, longest first.
	Meanwhile []Meanwhile
}

// Meanwhile is an agent's work during a connection for another call or an unknown one. Either Image or Fact is set.
type Meanwhile struct {
	// When is within the connection.
	When  Interval
	Image *Image
	Fact  *Fact
	// Attribution is the evidence as this call sees it: Others are the other possible calls.
	Attribution
	// Perhaps means that it may have been for this call or for none. Otherwise it only overlaps: the evidence names
	// another call, or it began between the two connections.
	Perhaps bool
}

// Spell is a time in one state.
type Spell struct {
	Interval
	State event.AgentState
	// Channel is the kernel function that a thread waited in.
	Channel string
	By      string
}

// During clips spells to an interval.
func During(all []Spell, when Interval) (some []Spell) {
	for _, one := range all {
		one.Start, one.End = max(one.Start, when.Start), min(one.End, when.End)
		if one.Took() > 0 {
			some = append(some, one)
		}
	}
	return some
}

// Spent is the total time in one state (ns).
type Spent struct {
	State event.AgentState
	Time  int64
	// Channel is the kernel function with the longest wait.
	Channel string
	// By is the last of the spells.
	By string
}

// Spent sums up the states within an interval, longest first.
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
