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

// askedMax is some how many processes are looked for in /proc at one sweep. An exit that the
// kernel side missed is so rare that it may be found a minute later where thousands are
// followed; it takes some 20 µs each (measured from a script, at a load of 16).
const askedMax = 256

// table is the reader's view of the kernel's process table. Both are brought
// together at every sweep: an event that was lost leaves a process on one side.
type table struct {
	kernel *kernel.Side
	live   map[event.Process]*tracked
	// sweeps counts them, so that each asks for other processes.
	sweeps uint32
	// numbers are those of the processes in the kernel's table at the last sweep.
	numbers map[uint32]bool
	// servers are the servers in it that the reader had not known of at the last sweep.
	servers []kernel.Key
	// roots are those of the processes in it at the last sweep.
	roots map[kernel.Key]bool
	// idle are the roots that had an account and no process at the last sweep.
	idle map[kernel.Key]bool
}

type tracked struct {
	// missing is when it was first found not to be in the kernel's table any more, though no
	// exit was seen; 0 while it is there.
	missing int64
	// rootGone is when the run's first process was first seen to be over.
	rootGone int64
}

func newTable(side *kernel.Side) *table {
	return &table{kernel: side, live: map[event.Process]*tracked{}}
}

// tracking tells whether any process is tracked.
func (t *table) tracking() bool { return len(t.live) > 0 }

// note keeps the table current. It is false for an event of a process that nobody
// follows any more.
func (t *table) note(e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Exec:
		if t.live[b.Process] == nil {
			// Unless its fork was lost, it descends from a tree that was forgotten.
			if !b.Root && t.live[b.Parent] == nil {
				return false
			}
			t.live[b.Process] = &tracked{}
		}
	case *event.Fork:
		if t.live[b.Parent] == nil {
			return false
		}
		t.live[b.Process] = &tracked{}
	case *event.Exit:
		if t.live[b.Process] == nil {
			return false
		}
		delete(t.live, b.Process)
	}
	return true
}

// follows tells whether a process is tracked.
func (t *table) follows(process event.Process) bool { return t.live[process] != nil }

// add begins to track a process that is no plugin's, and remove ends it.
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

// reconcile compares both sides and returns the exits that were never seen: everything that
// was sent until a process was found missing has been read, and its exit was not in there.
func (t *table) reconcile(at watermark) []*event.Exit {
	there, roots := map[event.Process]bool{}, map[kernel.Key]bool{}
	t.numbers, t.servers = map[uint32]bool{}, nil
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
				t.servers = append(t.servers, p.Self)
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
