// Package pods follows pods beside their operations: what NRI reports of their sandboxes, their first connections, what
// agents do for them behind an ADD, and when the node's network was not ready for any.
package pods

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
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
