package probe

import (
	"fmt"
	"os"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// outlive is how long after the end of its run a process is still followed. What a
// plugin leaves running (a daemon) is not followed for ever.
const outlive = 30 * time.Second

// table is the reader's view of the kernel's process table. Both are brought
// together at every sweep: an event that was lost leaves a process on one side.
type table struct {
	probe *Probe
	live  map[event.Process]*tracked
	// counted are the kernel's loss counters as last reported.
	counted [bpfCounterCOUNTERS]uint64
}

type tracked struct {
	// missing: not in the kernel's table at the last sweep, and no exit seen.
	missing bool
	// rootGone is when the run's first process was first seen to be over.
	rootGone int64
}

func newTable(p *Probe) *table {
	return &table{probe: p, live: map[event.Process]*tracked{}}
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
	_ = t.probe.objects.Processes.Delete(keyOf(process, 0).Tgid)
}

// forget stops tracking a tree that turned out not to be a plugin's.
func (t *table) forget(root event.Process) {
	t.each(func(tgid uint32, p *bpfProcess) {
		if processKey(p.Root) == root {
			t.drop(tgid, p)
		}
	})
}

func (t *table) drop(tgid uint32, p *bpfProcess) {
	delete(t.live, processKey(p.Self))
	_ = t.probe.objects.Processes.Delete(tgid) // gone by itself is as good
}

// watch has the kernel side look for a process in its table from now on, before it is put
// in. It is never taken back (bpf/maps.h, slots), so a high number will do.
func (p *Probe) watch(tgid uint32) {
	_ = p.objects.Slots.Put(tgid%p.objects.Slots.MaxEntries(), uint32(1<<16))
}

func (t *table) each(f func(uint32, *bpfProcess)) {
	var tgid uint32
	var p bpfProcess
	var dead []func()
	entries := t.probe.objects.Processes.Iterate()
	for entries.Next(&tgid, &p) {
		tgid, p := tgid, p
		// Deleting while iterating restarts the iteration (bpf_map_get_next_key).
		dead = append(dead, func() { f(tgid, &p) })
	}
	for _, call := range dead {
		call()
	}
}

// reconcile compares both sides and returns the exits that were never seen.
func (t *table) reconcile(now int64) []*event.Exit {
	kernel := map[event.Process]bool{}
	t.each(func(tgid uint32, p *bpfProcess) {
		self, root := processKey(p.Self), processKey(p.Root)
		kernel[self] = true
		known := t.live[self]
		switch {
		case known == nil:
			// Its exec or fork was lost, or is still on its way.
			t.live[self] = &tracked{}
		case p.Self.Pid != 0 && !exists(p.Self.Pid):
			// Its exit was missed altogether (the program did not run).
			t.drop(tgid, p)
			t.live[self] = known
			delete(kernel, self)
		case self != root && t.live[root] == nil && known.rootGone == 0:
			known.rootGone = now
		case known.rootGone != 0 && now-known.rootGone > int64(outlive):
			t.drop(tgid, p)
		}
	})
	var unseen []*event.Exit
	for key, known := range t.live {
		if kernel[key] {
			known.missing = false
			continue
		}
		// The exit may have been sent after the ring was drained: one sweep's grace.
		if !known.missing {
			known.missing = true
			continue
		}
		delete(t.live, key)
		unseen = append(unseen, &event.Exit{Process: key, Unseen: true})
	}
	return unseen
}

// exists says whether pid is a process that has not ended.
func exists(pid uint32) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil || !os.IsNotExist(err)
}

// losses returns what was lost since it was last asked, by run where that is known.
func (t *table) losses() []*event.Lost {
	now := t.probe.counters()
	if now == t.counted {
		return nil
	}
	var lost []*event.Lost
	attributed := [bpfCounterCOUNTERS]uint64{}
	var key bpfLostKey
	var n uint64
	var keys []bpfLostKey
	for entries := t.probe.objects.Losses.Iterate(); entries.Next(&key, &n); {
		if key.Reason < uint32(bpfCounterCOUNTERS) {
			attributed[key.Reason] += n
			lost = append(lost, &event.Lost{
				Source: "probe", Reason: reasons[key.Reason], Count: n, Process: processKey(key.Root),
			})
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		_ = t.probe.objects.Losses.Delete(key)
	}
	for i, reason := range reasons {
		all := now[i] - t.counted[i]
		// An environment too long to be searched touches nothing that is open.
		if i == int(bpfCounterCUT_ENV) || all <= attributed[i] {
			continue
		}
		lost = append(lost, &event.Lost{Source: "probe", Reason: reason, Count: all - attributed[i]})
	}
	t.counted = now
	return lost
}

var reasons = [bpfCounterCOUNTERS]string{
	bpfCounterLOST_RING:  "ring full",
	bpfCounterLOST_TABLE: "process table full",
	bpfCounterCUT_ENV:    "environment too long",
	bpfCounterLOST_CALLS: "system call table full",
}
