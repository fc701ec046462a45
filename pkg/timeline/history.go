package timeline

import (
	"container/list"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/model"
)

// history remembers operations that are over, so that the next one of the same sandbox or
// pod can say what it follows on. Bounded: the one that was spoken of longest ago goes.
type history struct {
	limit   int
	entries map[string]*list.Element
	order   list.List // of *past, the latest first
}

// past is what is remembered under one name: the last operation, and how many there were.
type past struct {
	name  string
	last  model.Key
	count int
}

func newHistory(limit int) *history {
	return &history{limit: limit, entries: map[string]*list.Element{}}
}

// get returns what is known under name; nil if nothing is.
func (h *history) get(name string) *past {
	if e := h.entries[name]; e != nil {
		return e.Value.(*past)
	}
	return nil
}

func (h *history) put(name string, key model.Key) *past {
	if e := h.entries[name]; e != nil {
		p := e.Value.(*past)
		p.last = key
		p.count++
		h.order.MoveToFront(e)
		return p
	}
	if h.order.Len() >= h.limit {
		oldest := h.order.Back()
		delete(h.entries, h.order.Remove(oldest).(*past).name)
	}
	p := &past{name: name, last: key, count: 1}
	h.entries[name] = h.order.PushFront(p)
	return p
}

// link says what op follows on, and remembers it for those that follow.
func (h *history) link(op *model.Operation) {
	if op.ContainerID == "" {
		return
	}
	after := func(name, why string) {
		if p := h.get(name); p != nil {
			op.Before = append(op.Before, model.Before{Key: p.last, Why: why})
		}
	}
	setup, teardown, pod := "setup "+op.ContainerID, "teardown "+op.ContainerID, "pod "+op.Pod.UID
	switch op.Kind {
	case model.Setup:
		if op.Pod.UID != "" {
			after(pod, "previous attempt")
			op.Attempt = h.put(pod, op.Key()).count
		}
		h.put(setup, op.Key())
	case model.Teardown:
		after(setup, "setup of the sandbox")
		after(teardown, "earlier teardown")
		h.put(teardown, op.Key())
	}
}

// pasts are what is remembered of operations that are over.
type pasts struct {
	vouched *history
	hearsay *history // of what the runtime does not stand for
	orphans *history // the last ones that waited in vain, by container
	extents extents
}

func newPasts(limit int) pasts {
	return pasts{vouched: newHistory(4 * limit), hearsay: newHistory(4 * limit), orphans: newHistory(limit)}
}

// before is what went before an operation of that kind of trust.
func (p *pasts) before(op *active.Operation) *history {
	if op.Vouched() {
		return p.vouched
	}
	return p.hearsay
}
