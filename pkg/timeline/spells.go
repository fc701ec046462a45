package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Spell is a time in which an agent was found in one state.
type Spell struct {
	Interval
	State event.AgentState
	// Channel is the kernel function that a thread of that state waited in; empty if it ran.
	Channel string
	// By is what stopped or froze it, as in event.Agent.
	By string
}

// spells is what an agent was found doing, in order and disjoint. What is between two samples that differ
// is divided in the middle.
type spells struct {
	all  []Spell
	last event.Agent // the latest sample
	at   int64       // when it was taken; 0 if the agent is not followed
}

const (
	// spellsMax bounds the spells of one agent: of one that is sampled twenty times a second, and
	// is in another state each time, those of the last 25 s.
	spellsMax = 512
	// apart is how far apart two samples are at the most for what is between them to be known.
	apart = int64(2 * time.Second)
)

// sample takes a sample. One without a state, as in old recordings, says nothing: it is of one thread.
func (s *spells) sample(now int64, b *event.Agent) {
	if b.State != "" && s.at != 0 && now > s.at && now-s.at <= apart {
		middle := now
		if s.last.State != b.State || s.last.Channel != b.Channel {
			middle = s.at + (now-s.at)/2
		}
		s.add(Spell{Interval{s.at, middle}, s.last.State, s.last.Channel, s.last.By})
		s.add(Spell{Interval{middle, now}, b.State, b.Channel, b.By})
	}
	s.last, s.at = *b, max(s.at, now)
	if b.State == "" || b.Over {
		s.at = 0
	}
}

func (s *spells) add(one Spell) {
	if one.took() <= 0 {
		return
	}
	if n := len(s.all); n > 0 {
		last := &s.all[n-1]
		if last.State == one.State && last.Channel == one.Channel && last.By == one.By && last.End == one.Start {
			last.End = one.End
			return
		}
	}
	if len(s.all) >= spellsMax {
		s.all = slices.Delete(s.all, 0, 1)
	}
	s.all = append(s.all, one)
}

// during returns what lies within an interval.
func during(all []Spell, when Interval) (some []Spell) {
	for _, one := range all {
		one.Start, one.End = max(one.Start, when.Start), min(one.End, when.End)
		if one.took() > 0 {
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
	for _, one := range during(w.States, when) {
		if in[one.State] == nil {
			in[one.State] = map[string]int64{}
			all = append(all, Spent{State: one.State})
		}
		in[one.State][one.Channel] += one.took()
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
