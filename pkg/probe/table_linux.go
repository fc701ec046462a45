package probe

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// outlive is how long processes are followed after their run.
const outlive = 30 * time.Second

// askedMax bounds a sweep's lookups: of thousands, an exit may be late.
const askedMax = 256

// table mirrors the kernel's process table; sweeps reconcile them.
type table struct {
	kernel *kernel.Side
	live   map[event.Process]*tracked
	sweeps uint32
	// tgids in the kernel's table at the last sweep
	numbers   map[uint32]bool
	strangers []kernel.Key
	// roots of the processes at the last sweep
	roots map[kernel.Key]bool
	// roots with an account, but without a process
	idle map[kernel.Key]bool
}

type tracked struct {
	// for reader.halts; looked is the last poll or event
	pid    uint32
	parent event.Process
	looked int64
	// when it was known to exist, and to have children
	there, parentAt int64
	// at the last poll
	halted bool
	// when the process began to run a plugin, else 0
	began int64
	run   *tracked
	// of the run
	last, slept int64
	// when it was first absent from the kernel's table, else 0
	missing int64
	// when the run's first process was found exited, else 0
	rootGone int64
}

func newTable(side *kernel.Side) *table {
	return &table{kernel: side, live: map[event.Process]*tracked{}}
}

func (t *table) tracking() bool { return len(t.live) > 0 }

func (t *table) note(e event.Event) bool {
	doer := t.live[e.Body.Doer()]
	switch b := e.Body.(type) {
	case *event.Exec:
		// Unless its fork was lost, its tree was forgotten.
		if t.live[b.Process] == nil && !b.Root && t.live[b.Parent] == nil {
			return false
		}
		t.add(b.Process)
		doer = t.live[b.Process]
		doer.pid, doer.parent = b.PID, b.Parent
		if b.Root {
			doer.began, doer.run = e.Time, doer
		}
	case *event.Fork:
		if doer == nil {
			return false
		}
		t.live[b.Process] = &tracked{pid: b.PID, parent: b.Parent, looked: e.Time, there: e.Time, run: doer.run}
	case *event.Exit:
		if doer == nil {
			return false
		}
		if up := t.live[doer.parent]; up != nil {
			up.looked = max(up.looked, e.Time)
		}
		delete(t.live, b.Process)
	}
	if doer == nil {
		return true
	}
	doer.looked, doer.there = max(doer.looked, e.Time), max(doer.there, e.Time)
	if run := doer.run; run != nil {
		run.last = max(run.last, e.Time)
		if w, is := e.Body.(*event.Wait); is && w.Kind == event.WaitSleep {
			run.slept += w.Until(e.Time) - w.Start
		}
	}
	return true
}

// Tracing polled files slows every process, so only runs that sleep or are silent start it.
const (
	pollingAfter = 500 * time.Millisecond
	pollingUntil = time.Minute
	sleepShare   = 8
)

func (t *table) polls(now int64) bool {
	for _, one := range t.live {
		if one.began == 0 {
			continue
		}
		age, silent := time.Duration(now-one.began), time.Duration(now-one.last)
		idle := silent >= pollingAfter || one.slept >= int64(age)/sleepShare
		if idle && age >= pollingAfter && age < pollingUntil {
			return true
		}
	}
	return false
}

func (t *table) follows(process event.Process) bool { return t.live[process] != nil }

func (t *table) add(process event.Process) {
	if t.live[process] == nil {
		t.live[process] = &tracked{}
	}
}

func (t *table) remove(process event.Process) {
	delete(t.live, process)
	if p, ok := t.kernel.Process(kernel.KeyOf(process, 0).Tgid); ok && kernel.ProcessOf(p.Self) == process {
		t.drop(&p)
	}
}

func (t *table) forget(root event.Process) {
	kernel.Each(t.kernel.Life.Processes, func(_ *uint32, p *kernel.LifeProcess) {
		if kernel.ProcessOf(p.Root) == root {
			t.drop(p)
		}
	})
}

func (t *table) drop(p *kernel.LifeProcess) {
	delete(t.live, kernel.ProcessOf(p.Self))
	t.kernel.Remove(p)
}

func (t *table) reconcile(at watermark) []*event.Exit {
	there, roots := map[event.Process]bool{}, map[kernel.Key]bool{}
	t.numbers, t.strangers = map[uint32]bool{}, nil
	t.sweeps++
	parts := uint32(len(t.live)/askedMax) + 1
	kernel.Each(t.kernel.Life.Processes, func(tgid *uint32, p *kernel.LifeProcess) {
		self, root := kernel.ProcessOf(p.Self), kernel.ProcessOf(p.Root)
		there[self], roots[p.Root], t.numbers[*tgid] = true, true, true
		known := t.live[self]
		switch {
		case known == nil:
			// Its exec or fork is lost or not yet read.
			t.live[self] = &tracked{}
			if p.Agent != 0 && self == root {
				t.strangers = append(t.strangers, p.Self)
			}
		case *tgid%parts == t.sweeps%parts && p.Self.Pid != 0 && at.now-known.there > int64(sweepEvery) &&
			!procfs.Exists(int(p.Self.Pid), int64(p.Self.Start)):
			// The exit program did not run.
			t.drop(p)
			t.live[self] = known
			delete(there, self)
		case self != root && t.live[root] == nil && known.rootGone == 0:
			known.rootGone = at.now
		case known.rootGone != 0 && at.now-known.rootGone > int64(outlive):
			t.drop(p)
		}
	})
	t.roots = roots
	t.idle = t.kernel.ForgetAccounts(roots, t.idle)
	var unseen []*event.Exit
	for key, known := range t.live {
		switch {
		case there[key]:
			known.missing = 0
		case known.missing == 0:
			known.missing = at.now
		case at.passed-known.missing > int64(skew): // the exit follows the removal
			delete(t.live, key)
			unseen = append(unseen, &event.Exit{Process: key, Unseen: true})
		}
	}
	return unseen
}
