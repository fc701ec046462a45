package active

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const (
	// idleMax bounds the times in which threads of one image slept, or polled.
	idleMax = 4096
	// retry is how long after a lock was refused the next attempt still belongs to the
	// same wait: iptables asks again every second (iptables(8), --wait-interval).
	retry = 2 * time.Second
	// triesMax bounds the locks that one process is seen to retry.
	triesMax = 8
)

// Wait records a wait for anything but a file lock. holder is the run that held what was waited
// for; nil if that is not known.
func (p *Process) Wait(now int64, w *event.Wait, holder *suspect) {
	im, kept := p.Current(), &model.Wait{Kind: w.Kind, Name: w.Name, Error: w.Error, Holder: w.Holder}
	when := Within(im, w.Start, w.Until(now))
	fact, long := &model.Fact{Thread: w.Thread, When: when, What: kept}, p.Worth(when)
	switch fact.Kind() {
	case model.FactMutex:
		long = true // the source sends only long ones, and they lie within requests
	case model.FactSleep:
		im.Asleep = p.idle(im.Asleep, when)
		long = when.Took() >= model.Idly*int64(p.Op.MinSpan)
	case model.FactPoll:
		im.Polling = p.idle(im.Polling, when)
		long = false
	case model.FactCall:
		if p.latest == (systemCall{w.Thread, when.Start}) {
			return // a request or setting tells more of this call
		}
	}
	im.Tallies[fact.Kind()].Add(1, when.Took())
	if long && p.Room("waits") {
		p.Keep(fact)
		p.accuse(kept, holder)
	}
}

func (p *Process) idle(to []model.Interval, i model.Interval) []model.Interval {
	if len(to) >= idleMax && to[len(to)-1].End < i.Start {
		p.miss("waits", 1)
		return to
	}
	return join(to, i)
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

// systemCall tells one from another. All requests of one share its time; and if that is
// long, a wait tells it once more.
type systemCall struct {
	thread uint32
	start  int64
}
