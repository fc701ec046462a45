package active

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Locks are the past and present holders of file locks, by path.
type Locks struct {
	suspects
	limit int
	paths map[string][]hold
	held  map[event.Process][]string
}

type hold struct {
	by      event.Process
	pid     uint32
	name    string
	suspect *suspect
	since   int64
	until   int64 // 0 while held
}

const (
	holdsMax = 64
	// remembered is how long a free lock stays known.
	remembered = time.Minute
)

// NewLocks returns an empty set for limit paths.
func NewLocks(limit int, t *tree.Tree) *Locks {
	return &Locks{
		suspects: suspects{tree: t, by: map[event.Process]*suspect{}}, limit: limit,
		paths: map[string][]hold{}, held: map[event.Process][]string{},
	}
}

func (l *Locks) take(path string, h hold) {
	for _, other := range l.paths[path] {
		if other.by == h.by && other.until == 0 {
			return
		}
	}
	holds, known := l.paths[path]
	if !known && len(l.paths) >= l.limit {
		return // only its holder's minimum age will be known
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
	l.held[by] = slices.DeleteFunc(l.held[by], func(p string) bool { return p == path })
	if len(l.held[by]) == 0 {
		delete(l.held, by)
	}
}

// Gone releases all locks of an exited process.
func (l *Locks) Gone(by event.Process, now int64) {
	for _, path := range slices.Clone(l.held[by]) {
		l.release(path, by, now)
	}
}

// holder returns a lock's holder when waiter began to wait, and for how long. said is the source's information.
func (l *Locks) holder(
	path string, said *event.Actor, waiter event.Process, wait model.Interval,
) (who *event.Actor, age int64, exact bool) {
	if said != nil && said.Process == "" && said.PID == 0 {
		said = nil
	}
	least := wait.End
	for _, h := range l.paths[path] {
		if h.by == waiter {
			continue
		}
		if h.since > wait.Start {
			least = min(least, h.since)
			continue
		}
		if h.until != 0 && h.until <= wait.Start ||
			said != nil && said.Process != h.by && (said.Process != "" || said.PID != h.pid) {
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

func (l *Locks) accused(wait *model.Wait, when model.Interval, waiter *Process) *suspect {
	for _, h := range l.paths[wait.Path] {
		if h.by == wait.Holder.Process && h.since <= when.Start && (h.until == 0 || h.until > when.Start) &&
			h.suspect != nil && h.suspect.run != waiter.Run {
			return h.suspect
		}
	}
	return l.run(wait.Holder.Process, waiter)
}

func (l *Locks) passed(path string, first event.Process, wait model.Interval) (n int) {
	for _, h := range l.paths[path] {
		if h.since > wait.Start && h.since < wait.End && h.by != first {
			n++
		}
	}
	return n
}

// Prune drops locks that were free for a minute.
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

// Wait applies a request, grant or release of a file lock. p may be nil.
func (l *Locks) Wait(now int64, w *event.Wait, p *Process) {
	if w.Released {
		l.release(w.Path, w.Process, now)
		return
	}
	if p != nil {
		l.waits(w.Until(now), w, p)
	}
	if w.Error == "" && w.Path != "" {
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
		thread: w.Thread, when: Within(p.Current(), w.Start, over), over: over, claim: p.claim,
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
	if w.Error != "" && len(p.tries) < triesMax {
		p.tries = append(p.tries, a)
		return
	}
	l.waited(p, a)
}

func (l *Locks) waited(p *Process, a try) {
	im, wait := p.Current(), a.wait
	p.claim = a.claim
	when := Within(im, a.when.Start, a.when.End)
	if wait.Holder != nil {
		p.accuse(wait, l.accused(wait, when, p))
		wait.Passed = l.passed(wait.Path, wait.Holder.Process, when)
	}
	im.Tallies[model.FactLock].Add(1, when.Took())
	if p.worth(when) && p.Room("waits") {
		p.Keep(&model.Fact{Thread: a.thread, When: when, What: wait})
	}
}

// Leave records a process's remaining locks and failed waits.
func (l *Locks) Leave(key event.Process, p *Process) {
	l.over(key, p)
	l.giveUp(p)
}

func (l *Locks) giveUp(p *Process) {
	for _, a := range p.tries {
		l.waited(p, a)
	}
	p.tries = nil
}

// Close records failed waits of agents for op.
func (l *Locks) Close(op *Operation) {
	for _, w := range op.works {
		l.giveUp(w.own)
		l.giveUp(w.shared)
	}
}

type try struct {
	wait   *model.Wait
	thread uint32
	when   model.Interval
	over   int64
	claim  *claim
}

const (
	// idleMax bounds the intervals in which threads slept or polled.
	idleMax = 4096
	// retry bounds the time between attempts of one wait: iptables repeats every second (iptables(8), --wait-interval).
	retry    = 2 * time.Second
	triesMax = 8
)

// Wait records any other wait. holder may be nil.
func (p *Process) Wait(now int64, w *event.Wait, holder *suspect) {
	im, when := p.Current(), Within(p.Current(), w.Start, w.Until(now))
	kind, long := model.FactOf(w.Kind), p.worth(when)
	switch kind {
	case model.FactMutex:
		long = true // the source sends only long ones
	case model.FactSleep:
		im.Asleep = p.idle(im.Asleep, when)
		long = when.Took() >= model.Idly*int64(p.Op.MinSpan)
	case model.FactPoll:
		im.Polling = p.idle(im.Polling, when)
		long = false
	case model.FactCall:
		if p.latest == (systemCall{w.Thread, when.Start}) {
			return // a request or setting describes it better
		}
	}
	im.Tallies[kind].Add(1, when.Took())
	if long && p.Room("waits") {
		kept := &model.Wait{Kind: w.Kind, Name: w.Name, Error: w.Error, Holder: w.Holder}
		p.Keep(&model.Fact{Thread: w.Thread, When: when, What: kept})
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

// between is the longest gap in an interval of sleeps: loops sleep a hundred thousand times.
const between = 100 * time.Microsecond

// join expects an ordered list.
func join(to []model.Interval, i model.Interval) []model.Interval {
	for len(to) > 0 && to[len(to)-1].End+int64(between) >= i.Start {
		last := to[len(to)-1]
		i.Start, i.End = min(i.Start, last.Start), max(i.End, last.End)
		to = to[:len(to)-1]
	}
	return append(to, i)
}

// systemCall identifies a system call: its requests share its time, and a wait may report it again.
type systemCall struct {
	thread uint32
	start  int64
}
