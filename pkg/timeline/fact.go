package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// halt takes a sample of a process that is stopped or frozen, or goes on. What is between two samples that differ is
// divided in the middle.
func (p *process) halt(now int64, b *event.Agent) {
	middle, what := b.Since+(now-b.Since)/2, model.Halt{State: b.State, By: b.By}
	if p.halted != nil {
		if *p.halted.What.(*model.Halt) == what {
			p.halted.When.End = max(p.halted.When.End, now)
			return
		}
		p.halted.When.End = max(p.halted.When.End, middle)
		p.halted = nil
	}
	if b.State.Halted() && p.room("stops") {
		p.halted = p.keep(&model.Fact{When: within(p.current(), middle, now), What: &what})
	}
}

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
func join(to []model.Interval, i model.Interval) []model.Interval {
	for len(to) > 0 && to[len(to)-1].End+int64(between) >= i.Start {
		last := to[len(to)-1]
		i.Start, i.End = min(i.Start, last.Start), max(i.End, last.End)
		to = to[:len(to)-1]
	}
	return append(to, i)
}
