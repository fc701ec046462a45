package probe

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
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
	probe *Probe
	live  map[event.Process]*tracked
	// sweeps counts them, so that each asks for other processes.
	sweeps uint32
	// counted are the kernel's loss counters as last reported.
	counted [bpfCounterCOUNTERS]uint64
	// said is how much of it was reported, by run; attributed how much of that in all.
	said       map[bpfLostKey]uint64
	attributed [bpfCounterCOUNTERS]uint64
	// numbers are those of the processes in the kernel's table at the last sweep.
	numbers map[uint32]bool
	// servers are the servers in it that the reader had not known of at the last sweep.
	servers []taskKey
	// idle are the roots that had an account and no process at the last sweep.
	idle map[taskKey]bool
}

type tracked struct {
	// missing is when it was first found not to be in the kernel's table any more, though no
	// exit was seen; 0 while it is there.
	missing int64
	// rootGone is when the run's first process was first seen to be over.
	rootGone int64
}

func newTable(p *Probe) *table {
	return &table{probe: p, live: map[event.Process]*tracked{}, said: map[bpfLostKey]uint64{}}
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
	tgid := keyOf(process, 0).Tgid
	var p bpfProcess
	if t.probe.objects.Processes.Lookup(tgid, &p) == nil && processKey(p.Self) == process {
		t.drop(tgid, &p)
	}
}

// forget stops tracking a tree that turned out not to be a plugin's.
func (t *table) forget(root event.Process) {
	each(t.probe.objects.Processes, func(tgid *uint32, p *bpfProcess) {
		if processKey(p.Root) == root {
			t.drop(*tgid, p)
		}
	})
}

func (t *table) drop(tgid uint32, p *bpfProcess) {
	delete(t.live, processKey(p.Self))
	if t.probe.objects.Processes.Delete(tgid) != nil { // gone by itself is as good
		return
	}
	t.probe.leave(p)
	if hasShare(p) {
		t.probe.giveShareBack()
	}
}

// watch has the kernel side look for a process in its table from now on, before it is put
// in. It is never taken back (bpf/maps.h, slots), so a high number will do.
func (p *Probe) watch(tgid uint32) {
	_ = p.objects.Slots.Put(tgid%p.objects.Slots.MaxEntries(), uint32(1<<16))
}

// reconcile compares both sides and returns the exits that were never seen: everything that
// was sent until a process was found missing has been read, and its exit was not in there.
func (t *table) reconcile(at watermark) []*event.Exit {
	kernel, roots := map[event.Process]bool{}, map[taskKey]bool{}
	t.numbers, t.servers = map[uint32]bool{}, nil
	t.sweeps++
	parts := uint32(len(t.live)/askedMax) + 1
	each(t.probe.objects.Processes, func(tgid *uint32, p *bpfProcess) {
		self, root := processKey(p.Self), processKey(p.Root)
		kernel[self], roots[p.Root], t.numbers[*tgid] = true, true, true
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
			t.drop(*tgid, p)
			t.live[self] = known
			delete(kernel, self)
		case self != root && t.live[root] == nil && known.rootGone == 0:
			known.rootGone = at.now
		case known.rootGone != 0 && at.now-known.rootGone > int64(outlive):
			t.drop(*tgid, p)
		}
	})
	t.forgetLosses(roots)
	t.idle = t.probe.forgetAccounts(roots, t.idle)
	var unseen []*event.Exit
	for key, known := range t.live {
		switch {
		case kernel[key]:
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

// losses returns what was lost since it was last asked, by run where that is known.
//
// What is kept by run is read after what is counted in all, and the kernel side counts in the
// opposite order: a loss is never taken for one of nobody because it came in between.
func (t *table) losses() []*event.Lost {
	now := t.probe.counters()
	if now == t.counted {
		return nil
	}
	t.counted = now
	var lost []*event.Lost
	each(t.probe.objects.Losses, func(key *bpfLostKey, n *uint64) {
		before := t.said[*key]
		if *n < before { // it was forgotten for others, and began anew
			before = 0
		}
		if *n == before || key.Reason >= uint32(bpfCounterCOUNTERS) {
			return
		}
		t.said[*key] = *n
		t.attributed[key.Reason] += *n - before
		lost = append(lost, &event.Lost{
			Source: "probe", Reason: reasons[key.Reason], Count: *n - before, Process: processKey(key.Root),
		})
	})
	for i, reason := range reasons {
		// An environment too long to be searched, and a run that was refused for who started
		// it, touch nothing that is open.
		if i == int(bpfCounterCUT_ENV) || i == int(bpfCounterLOST_SHARE) || now[i] <= t.attributed[i] {
			continue
		}
		lost = append(lost, &event.Lost{Source: "probe", Reason: reason, Count: now[i] - t.attributed[i]})
		t.attributed[i] = now[i]
	}
	return lost
}

// forgetLosses drops what is kept of runs that are over.
func (t *table) forgetLosses(live map[taskKey]bool) {
	each(t.probe.objects.Losses, func(key *bpfLostKey, n *uint64) {
		if !live[key.Root] && t.said[*key] == *n {
			_ = t.probe.objects.Losses.Delete(*key)
		}
	})
	for key := range t.said {
		if !live[key.Root] {
			delete(t.said, key)
		}
	}
}

var reasons = [bpfCounterCOUNTERS]string{
	bpfCounterLOST_RING:  "ring full",
	bpfCounterLOST_TABLE: "process table full",
	bpfCounterCUT_ENV:    "environment too long",
	bpfCounterLOST_CALLS: "system call table full",
	bpfCounterLOST_SHARE: "share of the process table full",
	bpfCounterLOST_QUOTA: "over quota",
	bpfCounterLOST_CONNS: "connection table full",
}
