package agents

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// spells is what an agent was found doing, in order and disjoint. What is between two samples that differ
// is divided in the middle.
type spells struct {
	all  []model.Spell
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
		s.add(model.Spell{Interval: model.Interval{Start: s.at, End: middle}, State: s.last.State, Channel: s.last.Channel, By: s.last.By})
		s.add(model.Spell{Interval: model.Interval{Start: middle, End: now}, State: b.State, Channel: b.Channel, By: b.By})
	}
	s.last, s.at = *b, max(s.at, now)
	if b.State == "" || b.Over {
		s.at = 0
	}
}

func (s *spells) add(one model.Spell) {
	if one.Took() <= 0 {
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
