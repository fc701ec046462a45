package proctracker

import (
	"container/heap"
	"slices"
	"strconv"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// Take takes a notice as soon as it has come.
func (t *Tracker) Take(n Notice) {
	switch n.Kind {
	case Began:
		t.began(n)
	case Runs:
		t.runs(n)
	case Ended:
		t.ended(n)
	}
}

// Present takes a process that was there before anybody was told of one, and is found at now: parents first.
func (t *Tracker) Present(pid, parent uint32, began, now int64) {
	if t.processes[pid] != nil {
		return // it was told of meanwhile
	}
	p := t.add(pid, parent, began)
	if p == nil {
		return
	}
	p.guessed, p.ran = true, now
	s, ok := t.o.Looker.Look(pid, parent, p.of == nil)
	if ok && (p.of != nil || t.believe(p, &s)) {
		t.put(&item{kind: Runs, time: began, process: p, sight: &s, present: true})
	}
}

func (t *Tracker) began(n Notice) {
	if p := t.processes[n.PID]; p != nil {
		switch {
		case n.Time <= p.began: // told twice, or late: p is known by what it ran
			t.stats.Late++
			return
		case p.guessed && p.ended == 0 && n.Time <= p.ran:
			return
		case p.ended == 0: // its number is another's, so it has ended
			t.leave(p, n.Time)
			if p.of != nil {
				t.put(&item{kind: Ended, time: n.Time, process: p, unseen: true})
			}
		}
	}
	p := t.add(n.PID, n.Parent, n.Time)
	if p != nil && p.of != nil {
		t.put(&item{kind: Began, time: n.Time, process: p})
	}
}

// add remembers a process, which descends from what its parent does; nil if there is no room for it.
func (t *Tracker) add(pid, parent uint32, began int64) *process {
	p := &process{pid: pid, up: parent, began: began}
	up := t.processes[parent]
	if up != nil && up.began <= began {
		p.upBegan, p.outcast = up.began, up.outcast
	} else {
		up = nil
	}
	if len(t.processes) >= t.o.Known && !t.makeRoom() {
		t.lose(began, LostRoom, 1, nil)
		return nil
	}
	t.processes[pid] = p
	if up != nil && up.of != nil && !t.follow(p, up.of) {
		p.outcast = true
		t.lose(began, LostRoom, 1, up.of)
	}
	return p
}

// follow has a process be one of a run's, and is false if there is no room for it: a run has a quarter of it at most,
// and all that the runtime did not start a half, as where BPF programs observe (docs/contributing/bounds.md).
func (t *Tracker) follow(p *process, of *root) bool {
	if t.followed >= t.o.Processes || of.processes >= max(1, t.o.Processes/4) || of.foreign && t.foreign >= t.o.Processes/2 {
		return false
	}
	p.of = of
	t.follows[p] = true
	t.count(of, 1)
	return true
}

func (t *Tracker) count(of *root, n int) {
	t.followed += n
	of.processes += n
	if of.foreign {
		t.foreign += n
	}
}

// makeRoom forgets some stranger: who that is will be read again, should it run a program.
func (t *Tracker) makeRoom() bool {
	for pid, p := range t.processes {
		if p.of == nil {
			delete(t.processes, pid)
			return true
		}
	}
	return false
}

// key is what p is called, parent its parent: made when they are told, which of most processes nothing is.
func (p *process) key() event.Process    { return keyOf(p.pid, p.began) }
func (p *process) parent() event.Process { return keyOf(p.up, p.upBegan) }

func keyOf(pid uint32, began int64) event.Process {
	return event.Process(strconv.FormatUint(uint64(pid), 10) + "@" + strconv.FormatInt(began, 10))
}

func (t *Tracker) runs(n Notice) {
	p := t.processes[n.PID]
	switch {
	case p == nil:
		t.met(n)
		return
	case n.Time == p.ran: // told twice
		return
	case n.Time < max(p.began, p.ran):
		t.stats.Late++ // of who had the number before, or overtaken
		return
	}
	if p.ended != 0 {
		t.revive(p, n.Time)
	}
	if n.Time <= p.looked { // that was this program already, and the last one was gone
		t.overtaken(p)
	}
	p.ran = n.Time
	s, ok := t.o.Looker.Look(n.PID, p.up, p.of == nil)
	t.seen(p, n.Time, s, ok)
}

// overtaken takes back what was seen of the last program of p.
func (t *Tracker) overtaken(p *process) {
	switch {
	case p.of == nil:
		t.stats.Looked.Strangers--
		t.stats.Missed.Strangers++
		t.perhaps(p)
	case p.program != nil && p.program.sight != nil:
		t.stats.Looked.Followed--
		t.stats.Missed.Followed++
		p.program.sight = nil
	}
}

// perhaps tells that nobody saw what a stranger ran, if that may have been a plugin.
func (t *Tracker) perhaps(p *process) {
	if p.up != 0 && t.o.Looker.Runtime(p.up) {
		t.lose(p.ran, LostCall, 1, nil)
	}
}

// revive takes a process that ran another program after its end was told: a thread of it did so, and took
// its number while the first one ended.
func (t *Tracker) revive(p *process, now int64) {
	if now < p.ended { // that came late: nobody can look any more
		return
	}
	p.ended = 0
	if p.exit != nil {
		p.exit.process, p.exit = nil, nil
	}
	t.leaving = slices.DeleteFunc(t.leaving, func(l *process) bool { return l == p })
}

// met takes a program of a process that nobody told of: that it began was lost, or comes late.
func (t *Tracker) met(n Notice) {
	s, ok := t.o.Looker.Look(n.PID, 0, true)
	up := t.processes[s.Parent]
	if ok && up != nil && up.of != nil { // no stranger
		s, ok = t.o.Looker.Look(n.PID, s.Parent, false)
	}
	began := n.Time
	if s.Began != 0 {
		began = min(s.Began, n.Time)
	}
	p := t.add(n.PID, s.Parent, began)
	if p == nil {
		return
	}
	p.guessed, p.ran = true, n.Time
	t.seen(p, n.Time, s, ok)
}

// seen takes what a process was found to run.
func (t *Tracker) seen(p *process, now int64, s Sight, ok bool) {
	count := func(c *Counts) {
		if p.of != nil {
			c.Followed++
		} else {
			c.Strangers++
		}
	}
	if ok {
		p.looked = s.At
		count(&t.stats.Looked)
	} else {
		count(&t.stats.Missed)
	}
	switch {
	case p.of != nil:
		p.program = &item{kind: Runs, time: now, process: p, name: s.Name}
		if ok {
			p.program.sight = &s
		}
		t.put(p.program)
	case ok && t.believe(p, &s):
		p.program = &item{kind: Runs, time: now, process: p, sight: &s}
		t.put(p.program)
	case !ok:
		t.perhaps(p)
	}
}

// believe begins to follow a stranger if it is a plugin.
func (t *Tracker) believe(p *process, s *Sight) bool {
	if len(s.Env) == 0 || !s.InPath() || p.outcast {
		return false
	}
	caller := t.o.Looker.Caller(p.pid)
	if caller == "" {
		return false
	}
	of := &root{key: p.key(), known: &redact.Call{}, foreign: caller != event.CallerRuntime}
	if !t.follow(p, of) {
		if of.foreign && t.followed < t.o.Processes {
			t.stats.Refused++ // it touches no call of the runtime's
		} else {
			t.lose(p.ran, LostRoom, 1, nil)
		}
		return false
	}
	s.caller = caller
	return true
}

func (t *Tracker) ended(n Notice) {
	p := t.processes[n.PID]
	if p == nil || p.ended != 0 || n.Time < p.began {
		return
	}
	t.leave(p, n.Time)
	if p.of != nil {
		p.exit = &item{kind: Ended, time: n.Time, process: p, code: n.Code, signal: n.Signal, used: n.Used}
		t.put(p.exit)
	}
}

func (t *Tracker) leave(p *process, now int64) {
	p.ended = now
	t.leaving = append(t.leaving, p)
}

// Lost takes that so many notices were lost (at least one): whoever is known may have ended.
func (t *Tracker) Lost(n uint64) {
	t.lose(t.passed, LostNotices, max(1, n), nil)
	t.doubted = t.doubted[:0]
	for _, p := range t.processes {
		t.doubted = append(t.doubted, p)
	}
}

// lose counts what was missed at a time, and tells of it in its turn: whatever is open then may lack it.
func (t *Tracker) lose(at int64, reason string, n uint64, of *root) {
	t.order++
	heap.Push(&t.queue, &item{time: max(at, t.passed), order: t.order, lost: t.lost(reason, n, of)})
}

func (t *Tracker) lost(reason string, n uint64, of *root) *event.Lost {
	t.stats.Lost[reason] += n
	lost := &event.Lost{Source: t.o.Source, Reason: reason, Count: n, Gone: reason == LostSight || reason == LostCall}
	if of != nil {
		lost.Process = of.key
	}
	return lost
}
