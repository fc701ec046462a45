package model

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Connection is one connect(2) until its close, one Exchange, or a series of refused attempts at one address.
type Connection struct {
	Network, Address string
	// The last attempt's failure; for an exchange, why there is no answer.
	Error string
	Tries int
	// The process that answered (Answered), or created the listening socket.
	Agent    *event.Actor
	Answered bool
	Threads  []*event.ThreadSpan
	Work     *Work
	Exchange *Exchange
	// Exchanged counts its exchanges, which are separate facts.
	Exchanged int
	Open      bool
}

func (*Connection) kind() FactKind { return FactConnection }

// Exchange is one request on an existing stream until the answer. Its Connection's interval is the wait, and Agent the
// other end.
type Exchange struct {
	// The peer sent without a request: weak evidence for a wait.
	Unasked bool
	// It began before the caller's connection, with which the interval begins, or before the observation.
	Clipped bool
	// The written data may only acknowledge a read, so there was no wait.
	Receipt bool
	// If Clipped or Receipt: the first later write during the call, which is a request.
	Asked int64
	// The call ended first; the interval ends with the last report.
	Unended bool
}

// Work is an agent's work during a connection: the children and facts of Own and Shared, which are no processes of
// the call.
type Work struct {
	// Work for this call: certain, or no other call was connected.
	Own *Image
	// Work of unknown purpose: other calls were connected, or it is periodic. It is drawn below one call.
	Shared *Image
	// CPU time in ns, in steps of 10 ms. Channel (old recordings) is the kernel function its main thread last slept in.
	CPU     int64
	Channel string
	// In order; nil in old recordings.
	States []Spell
	// The time of the agent's exit; 0 if it did not exit.
	Gone   int64
	Killed string
	// Successor answered later at the same address; Back is that connection's start.
	Successor *event.Actor
	Back      int64
	// Longest first.
	Meanwhile []Meanwhile
	Stack     []event.Frame
	Perhaps   bool
}

// Slept reports whether the agent slept for it.
func (w *Work) Slept() bool { return !w.Perhaps && len(w.Stack) > 0 && w.Stack[0].Sleeps }

// Meanwhile is an agent's work during a connection for another or unknown call: an Image or a Fact.
type Meanwhile struct {
	When  Interval
	Image *Image
	Fact  *Fact
	Attribution
	// Possibly for this call; otherwise it only overlaps in time.
	Perhaps bool
}

// Spell is a period in which an agent was in one state.
type Spell struct {
	Interval
	State   event.AgentState
	Channel string
	By      string
}

// During returns the parts of spells within an interval.
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
	// The kernel function of the longest wait.
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
