package proctracker

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/tree"
)

const (
	// a sweep checks up to doubtedMax processes, 20 µs each
	sweepEvery = int64(time.Second)
	doubtedMax = 64
)

type item struct {
	kind    Kind
	time    int64
	process *process // nil: canceled
	// sight is nil if the process was gone; name is its last known name.
	sight *Sight
	name  string
	// a loss to report instead of a process event
	lost *event.Lost
	body event.Body
	// the process ran before the first notice
	present bool
	code    uint32
	signal  string
	used    event.Usage
	// the exit had no notice
	unseen bool
}

// Advance delivers the events before read minus the window, then a tick. Take earlier notices first. lag is
// event.Tick's.
func (t *Tracker) Advance(read, lag int64) {
	t.passed = max(t.passed, read-int64(t.o.Window))
	t.linger()
	for len(t.queue) > 0 && t.queue[0].time <= t.passed {
		i := t.queue[0]
		t.queue[0], t.queue = nil, t.queue[1:]
		t.deliver(i)
	}
	t.forgetLeft()
	t.lookFor()
	if t.passed-t.swept >= sweepEvery {
		t.swept = t.passed
		t.sweep()
	}
	t.o.Sink(event.Event{Time: t.passed, Body: &event.Tick{Lag: lag}})
}

func (t *Tracker) deliver(i *item) {
	if i.lost != nil {
		t.o.Sink(event.Event{Time: i.time, Body: i.lost})
		return
	}
	p := i.process
	if p == nil || p.of == nil {
		return
	}
	if i.body != nil {
		t.o.Sink(event.Event{Time: i.time, Body: i.body})
		return
	}
	switch i.kind {
	case Began:
		t.apply(i, &event.Fork{Process: p.key(), Parent: p.parent(), PID: p.pid})
	case Runs:
		if p.program == i {
			p.program = nil
		}
		t.exec(i)
	case Ended:
		if !i.unseen && t.o.Looker.Alive(p.pid, p.began) {
			t.lingering = append(t.lingering, i)
			return
		}
		t.exit(i)
	}
}

func (t *Tracker) apply(i *item, body event.Body) tree.Step {
	step := t.tree.Apply(body)
	switch step.Role {
	case tree.Unknown:
	case tree.Refused:
		t.o.Sink(event.Event{Time: i.time, Body: t.lost(LostRoom, 1, i.process.of)})
	default:
		t.o.Sink(event.Event{Time: i.time, Body: body})
	}
	return step
}

func (t *Tracker) exec(i *item) {
	p := i.process
	e := &event.Exec{
		Process: p.key(), Parent: p.parent(), PID: p.pid, ParentPID: p.up, Started: p.began,
		Root: p.of.key == p.key() && t.tree.Get(p.key()) == nil, InFlight: i.present,
	}
	if i.sight == nil {
		e.Unidentified, e.Name = true, text.Clean(p.of.known.Program(i.name), 64)
		t.apply(i, e)
		t.o.Sink(event.Event{Time: i.time, Body: t.lost(LostSight, 1, p.of)})
		return
	}
	s := i.sight
	e.Stdin, e.NetNS = s.Stdin, s.NetNS
	if e.Root {
		e.Caller = s.caller
	}
	s.Describe(e, t.o.Arguments, p.of.known)
	switch t.apply(i, e).Role {
	case tree.Root, tree.Delegate:
		image.Acquaint(p.of.known, &t.inherited, e, s.Env, s.Args[min(1, len(s.Args)):])
	}
}

func (t *Tracker) exit(i *item) {
	p := i.process
	t.apply(i, &event.Exit{Process: p.key(), Code: i.code, Signal: i.signal, Used: i.used, Unseen: i.unseen})
	if p.of.key == p.key() {
		p.of.over = i.time
	}
	p.exit = nil
	t.unfollow(p)
}

func (t *Tracker) unfollow(p *process) {
	if p.of != nil {
		t.count(p.of, -1)
		delete(t.follows, p)
		p.of = nil
	}
}

// linger delivers exits whose other threads also ended.
func (t *Tracker) linger() {
	t.lingering = slices.DeleteFunc(t.lingering, func(i *item) bool {
		p := i.process
		if p != nil && p.of != nil {
			if t.o.Looker.Alive(p.pid, p.began) {
				return false
			}
			i.time = max(i.time, t.passed)
			t.put(i)
		}
		return true
	})
}

// forgetLeft drops exited processes when no earlier notice can come.
func (t *Tracker) forgetLeft() {
	t.leaving = slices.DeleteFunc(t.leaving, func(p *process) bool {
		if p.ended > t.passed || p.of != nil {
			return false
		}
		t.forget(p)
		return true
	})
}

func (t *Tracker) forget(p *process) {
	if t.processes[p.pid] == p {
		delete(t.processes, p.pid)
	}
}

func (t *Tracker) lookFor() {
	n := min(doubtedMax, len(t.doubted))
	for _, p := range t.doubted[:n] {
		if p.ended != 0 || t.processes[p.pid] != p || t.o.Looker.Alive(p.pid, p.began) {
			continue
		}
		t.leave(p, t.passed)
		if p.of != nil {
			t.put(&item{kind: Ended, time: t.passed, process: p, unseen: true})
		}
	}
	t.doubted = t.doubted[n:]
}

// sweep stops following long after a run, and doubts other processes, because notices may be lost silently.
func (t *Tracker) sweep() {
	for _, p := range t.processes {
		switch {
		case p.of == nil || p.ended != 0:
		case p.of.over != 0 && t.passed-p.of.over > int64(t.o.Outlive):
			t.tree.Remove(p.key())
			t.unfollow(p)
		case len(t.doubted) < doubtedMax:
			t.doubted = append(t.doubted, p)
		}
	}
}
