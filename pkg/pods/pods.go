// Package pods follows pods beside their operations: what NRI reports of their sandboxes, their first connections, what
// agents do for them behind an ADD, and when the node's network was not ready for any.
package pods

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Pods is what is known of pods. It is not safe for concurrent use.
type Pods struct {
	sandboxes
	firsts
	afters
	outages
}

// New returns no pods, and has room for those of as many open operations as said. abandon ends following the processes
// of an operation.
func New(operations int, abandon func(*active.Operation)) *Pods {
	return &Pods{
		sandboxes: sandboxes{limit: 4 * operations, known: map[string]*Sandbox{}},
		firsts:    firsts{limit: operations, namespaces: map[string]*namespace{}},
		afters:    afters{limit: operations, known: map[string]*finishedSetup{}, abandon: abandon},
	}
}

// Leave keeps what may still come for an operation that is over at now: a first connection, and work of agents.
func (p *Pods) Leave(now int64, op *active.Operation) {
	p.firsts.leave(op)
	p.afters.leave(now, op)
}

// Forget drops what is remembered for Connected and Afters of an operation that is over.
func (p *Pods) Forget(op model.Key) {
	p.firsts.forget(op)
	p.afters.forget(op)
}

// Expire ends waiting for what comes too late.
func (p *Pods) Expire(now int64) {
	p.firsts.expire(now)
	p.afters.expire(now)
}

// Connected returns the first connections of pods whose setup was over before, each once.
func (p *Pods) Connected() []model.Connected {
	over := p.firsts.over
	p.firsts.over = nil
	return over
}

// Outages returns the outages that are over since it was last asked.
func (p *Pods) Outages() []model.Outage {
	over := p.outages.over
	p.outages.over = nil
	return over
}

// Afters returns what agents did for pods whose setup was over before, each once, in order.
func (p *Pods) Afters() []model.After {
	over := p.afters.over
	p.afters.over = nil
	slices.SortStableFunc(over, func(a, b model.After) int { return earlier(a.Image, b.Image) })
	return over
}

func earlier(a, b *model.Image) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Process, b.Process))
}

// forget is how long a removed sandbox is remembered: its last DEL may still be open.
const forget = time.Minute

// sandboxes are those that NRI reported.
type sandboxes struct {
	limit int
	known map[string]*Sandbox
}

// Sandbox is NRI's latest report on a sandbox.
type Sandbox struct {
	*event.Sandbox
	told    int64 // when it was reported
	Ran     bool  // a report said that it runs
	Since   int64 // the first of those
	removed int64 // when it was removed; 0 if it was not
}

// Reported records a report of NRI, and returns whether it says that the sandbox runs.
func (all *sandboxes) Reported(now int64, s *event.Sandbox) (runs bool) {
	known := all.known[s.ID]
	switch {
	case known == nil:
		// A runtime that was restarted never says that the pods of its former life are gone.
		evict(all.known, all.limit, func(s *Sandbox) int64 { return s.told }, func(id string) { delete(all.known, id) })
		known = &Sandbox{}
		all.known[s.ID] = known
	case len(s.IPs) == 0 && known.Sandbox != nil:
		// Addresses are not repeated once the sandbox stops.
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
			known.Since = now
		}
		known.Ran = true
		return true
	}
	return false
}

// Sandbox returns the latest report on a sandbox; nil if there is none.
func (all *sandboxes) Sandbox(id string) *Sandbox { return all.known[id] }

// ExpireSandboxes forgets those that were removed a while ago.
func (all *sandboxes) ExpireSandboxes(now int64) {
	for id, s := range all.known {
		if s.removed != 0 && now-s.removed > int64(forget) {
			delete(all.known, id)
		}
	}
}

// evict drops the oldest of what is known, by its time and then by its name, if there is no room for one more.
func evict[V any](known map[string]V, limit int, since func(V) int64, drop func(string)) {
	if len(known) >= limit {
		drop(slices.MinFunc(slices.Collect(maps.Keys(known)), func(a, b string) int {
			return cmp.Or(cmp.Compare(since(known[a]), since(known[b])), cmp.Compare(a, b))
		}))
	}
}
