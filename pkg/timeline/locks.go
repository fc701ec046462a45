package timeline

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// locks is who has which lock on a file, and who had it before. A lock is known by its path.
type locks struct {
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
	// remembered is how long a lock is that nobody has.
	remembered = time.Minute
)

func newLocks(limit int, t *tree.Tree) *locks {
	return &locks{suspects: suspects{tree: t, by: map[event.Process]*suspect{}}, limit: limit, paths: map[string][]hold{}, held: map[event.Process][]string{}}
}

func (l *locks) take(path string, h hold) {
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

func (l *locks) release(path string, by event.Process, now int64) {
	for i, h := range l.paths[path] {
		if h.by == by && h.until == 0 {
			l.paths[path][i].until = max(now, h.since)
			l.forget(path, by)
		}
	}
}

func (l *locks) forget(path string, by event.Process) {
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

// gone releases all that a process had: it is over.
func (l *locks) gone(by event.Process, now int64) {
	for _, path := range append([]string(nil), l.held[by]...) {
		l.release(path, by, now)
	}
}

// holder says who had a lock when waiter began to wait for it, and how long. said is what
// the source knows of that.
func (l *locks) holder(path string, said *event.Actor, waiter event.Process, wait model.Interval) (who *event.Actor, age int64, exact bool) {
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
func (l *locks) accused(wait *model.Wait, when model.Interval, waiter *process) *suspect {
	for _, h := range l.paths[wait.Path] {
		if h.by == wait.Holder.Process && h.since <= when.Start && (h.until == 0 || h.until > when.Start) && h.suspect != nil && h.suspect.run != waiter.run {
			return h.suspect
		}
	}
	return l.run(wait.Holder.Process, waiter)
}

// passed counts who had a lock during a wait for it, without the one that had it first.
func (l *locks) passed(path string, first event.Process, wait model.Interval) (n int) {
	for _, h := range l.paths[path] {
		if h.since > wait.Start && h.since < wait.End && h.by != first {
			n++
		}
	}
	return n
}

func (l *locks) prune(now int64) {
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

// wait takes that a lock on a file was asked for, taken or released, by a process that is p if
// it belongs to an open operation.
func (l *locks) wait(now int64, w *event.Wait, p *process) {
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
			h.pid, h.name, h.suspect = p.current().PID, p.current().Name, p.suspect()
		}
		l.take(w.Path, h)
	}
}

func (l *locks) waits(over int64, w *event.Wait, p *process) {
	a := try{
		wait:   &model.Wait{Kind: w.Kind, Name: w.Name, Path: w.Path, Tries: 1, Error: w.Error},
		thread: w.Thread, when: within(p.current(), w.Start, over), over: over,
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

func (l *locks) waited(p *process, a try) {
	im, wait := p.current(), a.wait
	when := within(im, a.when.Start, a.when.End)
	if wait.Holder != nil {
		p.accuse(wait, l.accused(wait, when, p))
		wait.Passed = l.passed(wait.Path, wait.Holder.Process, when)
	}
	im.Tallies[model.FactLock].Add(1, when.Took())
	if p.worth(when) && p.room("waits") {
		p.keep(&model.Fact{Thread: a.thread, When: when, What: wait})
	}
}

// gaveUp keeps the waits of a process that never got its locks.
func (l *locks) gaveUp(p *process) {
	for _, a := range p.tries {
		l.waited(p, a)
	}
	p.tries = nil
}
