package proctracker

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// Take processes a notice. Call it at once.
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

// Present adds a process that ran before the first notice. Pass parents first.
func (t *Tracker) Present(pid, parent uint32, began, now int64) {
	if t.processes[pid] != nil {
		return // notified since
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
		case n.Time <= p.began: // repeated or late
			return
		case p.guessed && p.ended == 0 && n.Time <= p.ran:
			return
		case p.ended == 0: // reused PID
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

// follow returns false without room. A run may use a quarter, all runs that the runtime did not start half
// (docs/bounds.md).
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

// makeRoom drops a stranger, which its next exec restores.
func (t *Tracker) makeRoom() bool {
	for pid, p := range t.processes {
		if p.of == nil {
			delete(t.processes, pid)
			return true
		}
	}
	return false
}

// key makes keys on demand, because few are needed.
func (p *process) key() event.Process    { return KeyOf(p.pid, p.began) }
func (p *process) parent() event.Process { return KeyOf(p.up, p.upBegan) }

// KeyOf identifies a process by PID and start.
func KeyOf(pid uint32, began int64) event.Process {
	return event.Process(strconv.FormatUint(uint64(pid), 10) + "@" + strconv.FormatInt(began, 10))
}

func (t *Tracker) runs(n Notice) {
	p := t.processes[n.PID]
	switch {
	case p == nil:
		t.met(n)
		return
	case n.Time == p.ran, n.Time < max(p.began, p.ran): // or of the PID's earlier process
		return
	}
	if p.ended != 0 {
		t.revive(p, n.Time)
	}
	if n.Time <= p.looked { // the last look saw this program
		t.overtaken(p)
	}
	p.ran = n.Time
	s, ok := t.o.Looker.Look(n.PID, p.up, p.of == nil)
	t.seen(p, n.Time, s, ok)
}

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

func (t *Tracker) perhaps(p *process) {
	if p.up != 0 && t.o.Looker.Runtime(p.up) {
		t.lose(p.ran, LostCall, 1, nil)
	}
}

// revive undoes an exit, if another thread execs and so takes the ended process's PID.
func (t *Tracker) revive(p *process, now int64) {
	if now < p.ended {
		return
	}
	p.ended = 0
	if p.exit != nil {
		p.exit.process, p.exit = nil, nil
	}
	t.leaving = slices.DeleteFunc(t.leaving, func(l *process) bool { return l == p })
}

func (t *Tracker) met(n Notice) {
	s, ok := t.o.Looker.Look(n.PID, 0, true)
	up := t.processes[s.Parent]
	if ok && up != nil && up.of != nil {
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
			t.stats.Refused++ // affects no call of the runtime
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

// Lost records n lost notices, so any known process may have ended.
func (t *Tracker) Lost(n uint64) {
	t.lose(t.passed, LostNotices, max(1, n), nil)
	t.doubted = t.doubted[:0]
	for _, p := range t.processes {
		t.doubted = append(t.doubted, p)
	}
}

// put keeps events in order of time and arrival. Late ones get the current time, so that ticks stay true.
func (t *Tracker) put(i *item) {
	i.time = max(i.time, t.passed)
	later := func(x *item, time int64) int { return cmp.Or(cmp.Compare(x.time, time), -1) }
	at, _ := slices.BinarySearchFunc(t.queue, i.time, later)
	t.queue = slices.Insert(t.queue, at, i)
}

// lose affects calls in progress at that time.
func (t *Tracker) lose(at int64, reason string, n uint64, of *root) {
	t.put(&item{time: max(at, t.passed), lost: t.lost(reason, n, of)})
}

func (t *Tracker) lost(reason string, n uint64, of *root) *event.Lost {
	t.stats.Lost[reason] += n
	lost := &event.Lost{Source: t.o.Source, Reason: reason, Count: n, Gone: reason == LostSight || reason == LostCall}
	if of != nil {
		lost.Process = of.key
	}
	return lost
}
