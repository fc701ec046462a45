// Package pods follows pods outside of operations, and outages.
package pods

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Pods is the state of pods. Not for concurrent use.
type Pods struct {
	sandboxes
	firsts
	afters
	starts
	outages
}

// New returns an empty state. abandon stops following an operation's processes.
func New(operations int, late time.Duration, abandon func(*active.Operation)) *Pods {
	return &Pods{
		sandboxes: sandboxes{limit: 4 * operations, known: map[string]*Sandbox{}},
		firsts:    firsts{limit: operations, late: late, namespaces: map[string]*namespace{}},
		starts:    starts{limit: operations, known: map[string]*start{}},
		afters:    afters{limit: operations, known: map[string]*finishedSetup{}, abandon: abandon},
	}
}

// Leave notes a closed operation. Connections and agents' work may follow.
func (p *Pods) Leave(now int64, op *active.Operation) {
	p.firsts.leave(op)
	p.afters.leave(now, op)
	p.starts.leave(now, op)
}

// Forget drops a closed operation's state for Connected and Afters.
func (p *Pods) Forget(op model.Key) {
	p.firsts.forget(op)
	p.afters.forget(op)
	p.starts.drop(op)
}

// Expire stops waiting after the deadlines.
func (p *Pods) Expire(now int64) {
	p.flush(now, false)
	p.expire(now, false)
	maps.DeleteFunc(p.sandboxes.known, func(_ string, s *Sandbox) bool {
		return s.removed != 0 && now-s.removed > int64(forget)
	})
}

// Flush ends all waits.
func (p *Pods) Flush(now int64) {
	p.flush(now, true)
	p.expire(now, true)
	p.Finish(math.MaxInt64, func(*event.Sandbox, int64) bool { return false })
}

// Connected returns, once and in order, first connections after setups closed.
func (p *Pods) Connected() []model.Connected {
	return drain(&p.firsts.over, func(a, b model.Connected) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.First, b.First))
	})
}

// Asked returns, once and in order, what to look at: pods without a first connection (At is 0) and late ones.
func (p *Pods) Asked() []model.Connected {
	return drain(&p.asked, func(a, b model.Connected) int { return cmp.Compare(a.NetNS.Key, b.NetNS.Key) })
}

// Outages returns outages ended since the last call.
func (p *Pods) Outages() []model.Outage {
	return drain(&p.outages.over, func(a, b model.Outage) int { return cmp.Compare(a.Start, b.Start) })
}

// BringUps returns node starts whose first pod came since the last call.
func (p *Pods) BringUps() []model.BringUp {
	up := p.pending
	if up == nil || up.First.To == 0 {
		return nil
	}
	up.Failed, p.pending = p.failed, nil
	return []model.BringUp{*up}
}

// Afters returns, once and in order, agents' work after setups closed.
func (p *Pods) Afters() []model.After {
	return drain(&p.afters.over, func(a, b model.After) int { return earlier(a.Image, b.Image) })
}

// Started returns ended starts, once and in order.
func (p *Pods) Started() []model.Start {
	return drain(&p.starts.over, func(a, b model.Start) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ContainerID, b.ContainerID))
	})
}

func drain[T any](queue *[]T, order func(a, b T) int) []T {
	all := *queue
	*queue = nil
	slices.SortStableFunc(all, order)
	return all
}

func earlier(a, b *model.Image) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Process, b.Process))
}

// forget is how long a removed sandbox awaits its last DEL.
const forget = time.Minute

type sandboxes struct {
	limit int
	known map[string]*Sandbox
}

// Sandbox is NRI's latest report.
type Sandbox struct {
	*event.Sandbox
	told    int64
	Ran     bool  // reported as running
	Since   int64 // of the first such report
	first   *event.Sandbox
	removed int64
}

func (all *sandboxes) Reported(now int64, s *event.Sandbox) (runs bool) {
	known := all.known[s.ID]
	switch {
	case known == nil:
		// A restarted runtime does not report earlier pods' ends.
		evict(all.known, all.limit, func(s *Sandbox) int64 { return s.told }, func(id string) { delete(all.known, id) })
		known = &Sandbox{}
		all.known[s.ID] = known
	case len(s.IPs) == 0 && known.Sandbox != nil:
		// Reports of stopped sandboxes lack addresses.
		merged := *s
		merged.IPs = known.IPs
		s = &merged
	}
	known.Sandbox, known.told = s, now
	switch s.Phase {
	case event.SandboxRemoved:
		known.removed = now
	case event.SandboxRunning, event.SandboxPresent:
		if !known.Ran {
			known.Since, known.first = now, s
		}
		known.Ran = true
		return true
	}
	return false
}

func (all *sandboxes) Sandbox(id string) *Sandbox { return all.known[id] }

// Present returns sandboxes not yet removed.
func (all *sandboxes) Present() (present []*event.Sandbox) {
	for _, s := range all.known {
		if s.removed == 0 {
			present = append(present, s.Sandbox)
		}
	}
	return present
}

func evict[V any](known map[string]V, limit int, since func(V) int64, drop func(string)) {
	if len(known) >= limit {
		drop(slices.MinFunc(slices.Collect(maps.Keys(known)), func(a, b string) int {
			return cmp.Or(cmp.Compare(since(known[a]), since(known[b])), cmp.Compare(a, b))
		}))
	}
}
