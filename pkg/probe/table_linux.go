package probe

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// outlive is how long after the end of its run a remaining process (a daemon) is followed.
const outlive = 30 * time.Second

// askedMax bounds the processes that a sweep looks up in /proc, about 20 µs each (at a load of 16). With thousands of
// processes a missed exit, which is rare, may be noticed a minute late.
const askedMax = 256

// table mirrors the kernel's process table. Each sweep reconciles the two, because a lost event leaves a process in
// only one of them.
type table struct {
	kernel *kernel.Side
	live   map[event.Process]*tracked
	// sweeps selects the processes that a sweep looks up in /proc.
	sweeps uint32
	// numbers are the tgids in the kernel's table at the last sweep.
	numbers map[uint32]bool
	// strangers are agents in it that the reader did not know.
	strangers []kernel.Key
	// roots are the roots in it at the last sweep.
	roots map[kernel.Key]bool
	// idle are the roots with an account but no process at the last sweep.
	idle map[kernel.Key]bool
}

type tracked struct {
	// pid and looked belong to reader.halts; 0 for agents, and at first.
	pid    uint32
	looked int64
	halted bool // at looked
	// missing is when it was first missing from the kernel's table without an exit; else 0.
	missing int64
	// rootGone is when the exit of the run's first process was noticed.
	rootGone int64
}

func newTable(side *kernel.Side) *table {
	return &table{kernel: side, live: map[event.Process]*tracked{}}
}

func (t *table) tracking() bool { return len(t.live) > 0 }

// note applies an event, and returns false if its process is no longer followed.
func (t *table) note(e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Exec:
		if t.live[b.Process] == nil {
			// It descends from a forgotten tree, unless its fork was lost.
			if !b.Root && t.live[b.Parent] == nil {
				return false
			}
			t.live[b.Process] = &tracked{pid: b.PID}
		}
	case *event.Fork:
		if t.live[b.Parent] == nil {
			return false
		}
		t.live[b.Process] = &tracked{pid: b.PID}
	case *event.Exit:
		if t.live[b.Process] == nil {
			return false
		}
		delete(t.live, b.Process)
	}
	return true
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

// forget drops a tree that is not a plugin's.
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

// reconcile returns the missed exits: of processes that the kernel's table lacks, once all earlier records were read.
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
			// Its exec or fork was lost, or is not read yet.
			t.live[self] = &tracked{}
			if p.Agent != 0 && self == root {
				t.strangers = append(t.strangers, p.Self)
			}
		case *tgid%parts == t.sweeps%parts && p.Self.Pid != 0 && !procfs.Exists(int(p.Self.Pid), int64(p.Self.Start)):
			// Its exit was missed altogether (the program did not run).
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
		case at.passed-known.missing > int64(skew): // the exit is sent just after the table entry is removed
			delete(t.live, key)
			unseen = append(unseen, &event.Exit{Process: key, Unseen: true})
		}
	}
	return unseen
}
