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
	// Tries is how often a lock was asked for, if it took several times.
	Tries int
	// Error is why it ended in vain; empty if it did not.
	Error string
	// Holder is who had the lock when the wait began; nil if that is not known.
	Holder *event.Actor
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

func (w *Wait) kind() FactKind {
	switch w.Kind {
	case event.WaitLock:
		return FactLock
	case event.WaitMutex:
		return FactMutex
	case event.WaitSleep:
		return FactSleep
	case event.WaitPoll:
		return FactPoll
	}
	return FactCall
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
	wait   *Wait
	thread uint32
	when   Interval
	over   int64 // when it was asked for last
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
	im, kept := p.current(), &Wait{Kind: w.Kind, Name: w.Name, Error: w.Error, Holder: w.Holder}
	when := im.within(w.Start, now)
	long := when.took() >= int64(t.options.MinSpan)
	switch kept.kind() {
	case FactMutex:
		if w.Holder != nil {
			kept.suspect = t.suspected(w.Holder.Process, p)
		}
		long = true // only those are told that are worth it, and they lie within requests
	case FactSleep:
		im.Asleep = t.idle(p, im.Asleep, when)
		long = when.took() >= Idly*int64(t.options.MinSpan)
	case FactPoll:
		im.Polling = t.idle(p, im.Polling, when)
		long = false
	case FactCall:
		if im.latest == (systemCall{w.Thread, when.Start}) {
			return // it is known what that did
		}
	}
	im.Tallies[kept.kind()].add(1, when.took())
	if long && t.room(p, "waits") {
		p.keep(im, w.Thread, when, kept)
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
	a := try{
		wait:   &Wait{Kind: w.Kind, Name: w.Name, Path: w.Path, Tries: 1, Error: w.Error},
		thread: w.Thread, when: p.current().within(w.Start, now), over: now,
	}
	holder := w.Holder
	if i := slices.IndexFunc(p.tries, func(a try) bool { return a.wait.Path == w.Path }); i >= 0 {
		before := p.tries[i]
		p.tries = slices.Delete(p.tries, i, i+1)
		if a.when.Start-before.over <= int64(retry) {
			a.when.Start, a.wait.Tries = min(before.when.Start, a.when.Start), before.wait.Tries+1
			holder = before.wait.Holder
		} else {
			t.lockWaited(p, before)
		}
	}
	a.wait.Holder, a.wait.HolderAge, a.wait.AgeExact = t.locks.holder(w.Path, holder, w.Process, a.when)
	if w.Error != "" && len(p.tries) < triesMax { // it may ask again
		p.tries = append(p.tries, a)
		return
	}
	t.lockWaited(p, a)
}

// lockWaited keeps a wait that is over.
func (t *Timeline) lockWaited(p *process, a try) {
	im, wait := p.current(), a.wait
	when := im.within(a.when.Start, a.when.End)
	if wait.Holder != nil {
		wait.suspect = t.accused(wait, when, p)
		wait.Passed = t.locks.passed(wait.Path, wait.Holder.Process, when)
	}
	im.Tallies[FactLock].add(1, when.took())
	if when.took() >= int64(t.options.MinSpan) && t.room(p, "waits") {
		p.keep(im, a.thread, when, wait)
	}
}

// gaveUp keeps the waits of a process that never got its locks.
func (t *Timeline) gaveUp(p *process) {
	for _, a := range p.tries {
		t.lockWaited(p, a)
	}
	p.tries = nil
}
