package active

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// spells are sampled states, in order and disjoint. The time between two different samples is halved.
type spells struct {
	all  []model.Spell
	last event.Agent
	at   int64 // 0 if not followed
}

const (
	// spellsMax is enough for 25 s with twenty different samples per second.
	spellsMax = 512
	// apart is the longest time between samples that determines the states between them.
	apart = int64(2 * time.Second)
)

// sample adds a sample. Samples without a state (old recordings) are of a single thread.
func (s *spells) sample(now int64, b *event.Agent) {
	if b.State != "" && s.at != 0 && now > s.at && now-s.at <= apart {
		middle := now
		if s.last.State != b.State || s.last.Channel != b.Channel {
			middle = s.at + (now-s.at)/2
		}
		s.add(s.at, middle, &s.last)
		s.add(middle, now, b)
	}
	s.last, s.at = *b, max(s.at, now)
	if b.State == "" || b.Over {
		s.at = 0
	}
}

func (s *spells) add(start, end int64, of *event.Agent) {
	one := model.Spell{
		Interval: model.Interval{Start: start, End: end}, State: of.State, Channel: of.Channel, By: of.By,
	}
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
	s.all = model.Latest(s.all, spellsMax, one)
}
