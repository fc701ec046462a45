package timeline

import (
	"container/list"
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/model"
)

type history struct {
	limit   int
	entries map[string]*list.Element
	order   list.List // of *past, latest first
}

type past struct {
	name  string
	last  model.Key
	count int
}

func newHistory(limit int) *history {
	return &history{limit: limit, entries: map[string]*list.Element{}}
}

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

type pasts struct {
	vouched *history
	hearsay *history // the runtime does not vouch for these
	orphans *history // without a span of the runtime, by container
	extents extents
}

func newPasts(limit int) pasts {
	return pasts{vouched: newHistory(4 * limit), hearsay: newHistory(4 * limit), orphans: newHistory(limit)}
}

func (p *pasts) before(op *active.Operation) *history {
	if op.Vouched() {
		return p.vouched
	}
	return p.hearsay
}

type extents []model.Interval

func (x *extents) concur(over []*model.Operation, open []*active.Operation, now int64, limit int) {
	if len(over) == 0 {
		return
	}
	for _, op := range over {
		for _, call := range op.Calls {
			*x = append(*x, model.Interval{Start: call.Start, End: call.End})
		}
	}
	oldest := now
	var starts, ends []int64
	add := func(start, end int64) {
		if start < end {
			starts, ends = append(starts, start), append(ends, end)
		}
	}
	for _, i := range *x {
		add(i.Start, i.End)
	}
	for _, op := range open {
		oldest = min(oldest, op.Start)
		for _, c := range op.Calls {
			if c.Live() != nil {
				add(c.Start, now)
			} else {
				add(c.Start, c.End)
			}
		}
	}
	slices.Sort(starts)
	slices.Sort(ends)
	for _, op := range over {
		for _, call := range op.Calls {
			call.Concurrent = others(call, starts, ends)
		}
	}
	*x = slices.DeleteFunc(*x, func(i model.Interval) bool { return i.End < oldest })
	*x = slices.Delete(*x, 0, max(0, len(*x)-limit))
}

// others takes all calls' sorted starts and ends.
func others(call *model.Call, starts, ends []int64) int {
	i, _ := slices.BinarySearch(starts, call.Start+1)
	over, _ := slices.BinarySearch(ends, call.Start+1)
	most := i - over
	for ; i < len(starts) && starts[i] < call.End; i++ {
		for ends[over] <= starts[i] {
			over++
		}
		most = max(most, i+1-over)
	}
	if call.Start >= call.End {
		return 0
	}
	return max(0, most-1)
}
