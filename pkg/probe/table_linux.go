package probe

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// outlive is how long after the end of its run a process is still followed. What a
// plugin leaves running (a daemon) is not followed for ever.
const outlive = 30 * time.Second

// askedMax is about how many processes are looked up in /proc at one sweep, at some 20 µs each
// (measured at a load of 16). Exits that the kernel side missed are rare: where thousands of
// processes are followed, one may be noticed a minute late.
const askedMax = 256

// table is the reader's view of the kernel's process table. Every sweep reconciles the two: a
// lost event leaves a process in only one of them.
type table struct {
	kernel *kernel.Side
	live   map[event.Process]*tracked
	// sweeps counts the sweeps, so that each looks up other processes in /proc.
	sweeps uint32
	// numbers are the tgids in the kernel's table at the last sweep.
	numbers map[uint32]bool
	// strangers are the agents in it that the reader did not know at the last sweep.
	strangers []kernel.Key
	// roots are the roots of the processes in it at the last sweep.
	roots map[kernel.Key]bool
	// idle are the roots that had an account and no process at the last sweep.
	idle map[kernel.Key]bool
}

type tracked struct {
	// pid is its number here, and looked when that was last asked what it does (reader.halts); 0 for agents, and not yet.
	pid    uint32
	looked int64
	halted bool // then
	// missing is when it was first found not to be in the kernel's table any more, though no
	// exit was seen; 0 while it is there.
	missing int64
	// rootGone is when the run's first process was first seen to be over.
	rootGone int64
}

func newTable(side *kernel.Side) *table {
	return &table{kernel: side, live: map[event.Process]*tracked{}}
}

// tracking reports whether any process is tracked.
func (t *table) tracking() bool { return len(t.live) > 0 }

// note updates the table by an event. It returns false for an event of a process that is not
// followed any more.
func (t *table) note(e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Exec:
		if t.live[b.Process] == nil {
			// Unless its fork was lost, it descends from a tree that was forgotten.
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

// follows reports whether a process is tracked.
func (t *table) follows(process event.Process) bool { return t.live[process] != nil }

// add tracks a process that belongs to no plugin; remove stops tracking one.
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

// forget stops tracking a tree that turned out not to be a plugin's.
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

// reconcile compares the two tables and returns the exits that were never seen: those of processes that the
// kernel's table lacks, although everything sent before they were found missing has been read.
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
			// Its exec or fork was lost, or is still on its way.
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
		case at.passed-known.missing > int64(skew): // it is sent just after it left the table
			delete(t.live, key)
			unseen = append(unseen, &event.Exit{Process: key, Unseen: true})
		}
	}
	return unseen
}
