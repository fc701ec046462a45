package timeline

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Wait is a time in which a thread was blocked in the kernel.
type Wait struct {
	Kind event.WaitKind
	// Name is the system call, or of a mutex its name.
	Name string
	// Path is the lock's file.
	Path string
	Interval
	// Tries is how often a lock was asked for, if it took several times.
	Tries int
	// Error is why it ended in vain; empty if it did not.
	Error string
	// Holder is who had the lock when the wait began; nil if that is not known.
	Holder *event.Holder
	// HolderAge is how long the holder had the lock until this wait ended, or until it
	// let go (ns): exactly, or at least.
	HolderAge int64
	AgeExact  bool
	// Passed is how many others had the lock one after another in the meantime, as far as
	// they were seen.
	Passed int
	// Blame is the run of a plugin that had it when the wait began; nil if it was none.
	Blame *Blame

	suspect *suspect
}

const (
	// Idly is how many times Options.MinSpan a sleep, or a system call of no further
	// interest, lasts at least that is worth a span of its own. A thread of the Go runtime
	// sleeps for up to 10 ms again and again while the program works (runtime/proc.go,
	// sysmon); to start a command takes its parent some milliseconds on a busy node.
	Idly = 20
	// idleMax bounds the times in which threads of one image slept, or polled.
	idleMax = 4096
	// retry is how long after a lock was refused the next attempt still belongs to the
	// same wait: iptables asks again every second (iptables(8), --wait-interval).
	retry = 2 * time.Second
	// triesMax is how many locks a process is followed in asking for again.
	triesMax = 8
)

// try is a lock that was asked for in vain so far.
type try struct {
	wait Wait
	over int64 // when it was asked for last
}

func (t *Timeline) wait(now int64, w *event.Wait) {
	p := t.processes[w.Process]
	if w.Kind == event.WaitLock {
		t.fileLock(now, w, p)
		return
	}
	if p == nil {
		t.stats.Late++
		return
	}
	im := p.current()
	in, kept := im.inside(), Wait{Kind: w.Kind, Name: w.Name, Interval: im.within(w.Start, now), Error: w.Error, Holder: w.Holder}
	long := kept.took() >= int64(t.options.MinSpan)
	switch w.Kind {
	case event.WaitMutex:
		in.Mutexes.add(1, kept.took())
		if w.Holder != nil {
			kept.suspect = t.suspected(w.Holder.Process, p)
		}
		long = true // only those are told that are worth it, and they lie within requests
	case event.WaitSleep:
		in.Sleeps.add(1, kept.took())
		if in.Asleep = t.idle(p, in.Asleep, kept.Interval); kept.took() < Idly*int64(t.options.MinSpan) {
			return
		}
	case event.WaitPoll:
		in.Polls.add(1, kept.took())
		in.Polling = t.idle(p, in.Polling, kept.Interval)
		return
	default:
		if in.last == (systemCall{w.Thread, kept.Start}) {
			return // it is known what that did
		}
		in.Calls.add(1, kept.took())
	}
	if long && t.room(p, "waits") {
		in.Waits = append(in.Waits, kept)
	}
}

func (t *Timeline) idle(p *process, to []Interval, i Interval) []Interval {
	if len(to) >= idleMax && to[len(to)-1].End < i.Start {
		p.call.cut("waits", 1)
		return to
	}
	return join(to, i)
}

// fileLock follows who has a lock, and how long others wait for it.
func (t *Timeline) fileLock(now int64, w *event.Wait, p *process) {
	if w.Released {
		t.locks.release(w.Path, w.Process, now)
		return
	}
	if p == nil {
		t.stats.Late++
	} else {
		t.lockWait(now, w, p)
	}
	if w.Error == "" {
		h := hold{by: w.Process, since: now}
		if p != nil {
			h.pid, h.name, h.suspect = p.current().PID, p.current().Name, p.suspect()
		}
		t.locks.take(w.Path, h)
	}
}

func (t *Timeline) lockWait(now int64, w *event.Wait, p *process) {
	im := p.current()
	wait := Wait{Kind: w.Kind, Name: w.Name, Path: w.Path, Interval: im.within(w.Start, now), Tries: 1, Error: w.Error}
	wait.Holder, wait.HolderAge, wait.AgeExact = t.locks.holder(w.Path, w.Holder, w.Process, wait.Interval)
	i := slices.IndexFunc(p.tries, func(a try) bool { return a.wait.Path == w.Path })
	if i >= 0 {
		before := p.tries[i]
		p.tries = slices.Delete(p.tries, i, i+1)
		if wait.Start-before.over <= int64(retry) {
			wait.Start, wait.Tries = min(before.wait.Start, wait.Start), before.wait.Tries+1
			wait.Holder, wait.HolderAge, wait.AgeExact = t.locks.holder(w.Path, before.wait.Holder, w.Process, wait.Interval)
		} else {
			t.lockWaited(p, before.wait)
		}
	}
	if w.Error != "" && len(p.tries) < triesMax { // it may ask again
		p.tries = append(p.tries, try{wait, now})
		return
	}
	t.lockWaited(p, wait)
}

// lockWaited keeps a wait that is over.
func (t *Timeline) lockWaited(p *process, wait Wait) {
	im := p.current()
	wait.Interval = im.within(wait.Start, wait.End)
	if wait.Holder != nil {
		wait.suspect = t.accused(wait, p)
		wait.Passed = t.locks.passed(wait.Path, wait.Holder.Process, wait.Interval)
	}
	in, d := im.inside(), wait.took()
	in.Locks.add(1, d)
	if d >= int64(t.options.MinSpan) && t.room(p, "waits") {
		in.Waits = append(in.Waits, wait)
	}
}

// gaveUp keeps the waits of a process that never got its locks.
func (t *Timeline) gaveUp(p *process) {
	for _, a := range p.tries {
		t.lockWaited(p, a.wait)
	}
	p.tries = nil
}
