package model

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Connection is one connect(2) until its close, one Exchange, or a series of refused attempts at one address.
type Connection struct {
	Network, Address string
	// Error of the last attempt; for an exchange, why there is no answer.
	Error string
	Tries int
	// The process that answered, or created the listening socket.
	Agent     *event.Actor
	Answered  bool
	Work      *Work
	Exchange  *Exchange
	Exchanged int
	Open      bool
}

func (*Connection) kind() FactKind { return FactConnection }

// Exchange is one request on a stream until the answer: the fact's interval is the wait, its Agent the other end.
type Exchange struct {
	// The peer sent without a request: weak evidence for a wait.
	Unasked bool
	// It began before the caller's connection, where the interval begins, or before the observation.
	Clipped bool
	// The written data may only acknowledge a read, so there was no wait.
	Receipt bool
	// The first later write during the call, a request, if Clipped or Receipt.
	Asked int64
	// The call ended first; the interval ends with the last report.
	Unended bool
}

// Work is an agent's work during a connection: children and facts of Own and Shared, which are no processes of the
// call.
type Work struct {
	// Work for this call: certain, or of the only call connected.
	Own *Image
	// Work of unknown purpose: other calls were connected, or it is periodic. It is drawn below one call.
	Shared *Image
	// CPU time in ns, exact to 10 ms. Channel (old recordings) is the kernel function its main thread last slept in.
	CPU     int64
	Channel string
	// nil in old recordings.
	States []Spell
	Gone   int64
	Killed string
	// Successor answered later at the same address; Back is that connection's start.
	Successor *event.Actor
	Back      int64
	// Longest first.
	Meanwhile []Meanwhile
}

// Meanwhile is an agent's work during a connection for another or unknown call: an Image or a Fact.
type Meanwhile struct {
	When  Interval
	Image *Image
	Fact  *Fact
	Attribution
	// Possibly for this call; otherwise it only overlaps.
	Perhaps bool
}

// Spell is a time in one state.
type Spell struct {
	Interval
	State   event.AgentState
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

// Spent is the total time in one state, in ns.
type Spent struct {
	State event.AgentState
	Time  int64
	// Kernel function of the longest wait.
	Channel string
	By      string
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
