package active

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Locks is who has which lock on a file, and who had it before. A lock is known by its path.
type Locks struct {
	suspects
	limit int // of paths
	paths map[string][]hold
	held  map[event.Process][]string
}

// hold is one period in which a process held a lock.
type hold struct {
	by   event.Process
	pid  uint32
	name string
	// suspect is the run it belongs to; nil if it is none's.
	suspect *suspect
	since   int64
	until   int64 // 0 while it has it
}

const (
	// holdsMax is how many holders of one lock are remembered: those that had it while somebody waited.
	holdsMax = 64
	// remembered is how long a free lock is remembered.
	remembered = time.Minute
)

// NewLocks returns no locks, and has room for as many as said.
func NewLocks(limit int, t *tree.Tree) *Locks {
	return &Locks{suspects: suspects{tree: t, by: map[event.Process]*suspect{}}, limit: limit, paths: map[string][]hold{}, held: map[event.Process][]string{}}
}

func (l *Locks) take(path string, h hold) {
	for _, other := range l.paths[path] {
		if other.by == h.by && other.until == 0 {
			return // it has it already
		}
	}
	holds, known := l.paths[path]
	if !known && len(l.paths) >= l.limit {
		return // of its holder only the least age will be known
	}
	if len(holds) >= holdsMax {
		l.forget(path, holds[0].by)
		holds = holds[1:]
	}
	l.paths[path] = append(holds, h)
	l.held[h.by] = append(l.held[h.by], path)
}

func (l *Locks) release(path string, by event.Process, now int64) {
	for i, h := range l.paths[path] {
		if h.by == by && h.until == 0 {
			l.paths[path][i].until = max(now, h.since)
			l.forget(path, by)
		}
	}
}

func (l *Locks) forget(path string, by event.Process) {
	rest := l.held[by][:0]
	for _, p := range l.held[by] {
		if p != path {
			rest = append(rest, p)
		}
	}
	if l.held[by] = rest; len(rest) == 0 {
		delete(l.held, by)
	}
}

// Gone releases all that a process had: it is over.
func (l *Locks) Gone(by event.Process, now int64) {
	for _, path := range append([]string(nil), l.held[by]...) {
		l.release(path, by, now)
	}
}

// holder says who had a lock when waiter began to wait for it, and how long. said is what
// the source knows of that.
func (l *Locks) holder(path string, said *event.Actor, waiter event.Process, wait model.Interval) (who *event.Actor, age int64, exact bool) {
	if said != nil && said.Process == "" && said.PID == 0 {
		said = nil
	}
	least := wait.End
	for _, h := range l.paths[path] {
		if h.by == waiter {
			continue
		}
		if h.since > wait.Start {
			least = min(least, h.since) // by then the holder had let go
			continue
		}
		if h.until != 0 && h.until <= wait.Start {
			continue
		}
		if said != nil && said.Process != h.by && (said.Process != "" || said.PID != h.pid) {
			continue
		}
		who = said
		if who == nil {
			who = &event.Actor{Process: h.by, PID: h.pid, Name: h.name}
		}
		end := wait.End
		if h.until != 0 {
			end = min(end, h.until)
		}
		return who, end - h.since, true
	}
	if said == nil {
		return nil, 0, false
	}
	return said, max(0, least-wait.Start), false
}

// accused finds the run that had a lock when a wait for it began.
func (l *Locks) accused(wait *model.Wait, when model.Interval, waiter *Process) *suspect {
	for _, h := range l.paths[wait.Path] {
		if h.by == wait.Holder.Process && h.since <= when.Start && (h.until == 0 || h.until > when.Start) && h.suspect != nil && h.suspect.run != waiter.Run {
			return h.suspect
		}
	}
	return l.run(wait.Holder.Process, waiter)
}

// passed counts who had a lock during a wait for it, without the one that had it first.
func (l *Locks) passed(path string, first event.Process, wait model.Interval) (n int) {
	for _, h := range l.paths[path] {
		if h.since > wait.Start && h.since < wait.End && h.by != first {
			n++
		}
	}
	return n
}

// Prune forgets locks that no process has held for a while.
func (l *Locks) Prune(now int64) {
	for path, holds := range l.paths {
		last := int64(0)
		for _, h := range holds {
			if h.until == 0 {
				last = now
			}
			last = max(last, h.until)
		}
		if now-last > int64(remembered) {
			delete(l.paths, path)
		}
	}
}

// Wait takes that a lock on a file was asked for, taken or released, by a process that is p if
// it belongs to an open operation.
func (l *Locks) Wait(now int64, w *event.Wait, p *Process) {
	if w.Released {
		l.release(w.Path, w.Process, now)
		return
	}
	if p != nil {
		l.waits(w.Until(now), w, p)
	}
	if w.Error == "" {
		h := hold{by: w.Process, since: now}
		if p != nil {
			h.pid, h.name, h.suspect = p.Current().PID, p.Current().Name, p.suspect()
		}
		l.take(w.Path, h)
	}
}

func (l *Locks) waits(over int64, w *event.Wait, p *Process) {
	a := try{
		wait:   &model.Wait{Kind: w.Kind, Name: w.Name, Path: w.Path, Tries: 1, Error: w.Error},
		thread: w.Thread, when: Within(p.Current(), w.Start, over), over: over,
	}
	holder := w.Holder
	if i := slices.IndexFunc(p.tries, func(a try) bool { return a.wait.Path == w.Path }); i >= 0 {
		before := p.tries[i]
		p.tries = slices.Delete(p.tries, i, i+1)
		if a.when.Start-before.over <= int64(retry) {
			a.when.Start, a.wait.Tries = min(before.when.Start, a.when.Start), before.wait.Tries+1
			holder = before.wait.Holder
		} else {
			l.waited(p, before)
		}
	}
	a.wait.Holder, a.wait.HolderAge, a.wait.AgeExact = l.holder(w.Path, holder, w.Process, a.when)
	if w.Error != "" && len(p.tries) < triesMax { // it may ask again
		p.tries = append(p.tries, a)
		return
	}
	l.waited(p, a)
}

func (l *Locks) waited(p *Process, a try) {
	im, wait := p.Current(), a.wait
	when := Within(im, a.when.Start, a.when.End)
	if wait.Holder != nil {
		p.accuse(wait, l.accused(wait, when, p))
		wait.Passed = l.passed(wait.Path, wait.Holder.Process, when)
	}
	im.Tallies[model.FactLock].Add(1, when.Took())
	if p.Worth(when) && p.Room("waits") {
		p.Keep(&model.Fact{Thread: a.thread, When: when, What: wait})
	}
}

// Leave takes what a process leaves behind: what it held, and waits for locks that it never got.
func (l *Locks) Leave(key event.Process, p *Process) {
	l.over(key, p)
	for _, a := range p.tries {
		l.waited(p, a)
	}
	p.tries = nil
}

// try is a series of refused attempts to take a lock.
type try struct {
	wait   *model.Wait
	thread uint32
	when   model.Interval
	over   int64 // when the last attempt was refused
}

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
