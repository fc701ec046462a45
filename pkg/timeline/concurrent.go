package timeline

import (
	"cmp"
	"slices"
)

// concur says of each call of what is over how many others were under way.
func (t *Timeline) concur(over []*Operation) {
	if len(over) == 0 {
		return
	}
	for _, op := range over {
		for _, call := range op.Calls {
			t.extents = append(t.extents, Interval{call.Start, call.End})
		}
	}
	for _, op := range over {
		for _, call := range op.Calls {
			call.Concurrent = t.others(call)
		}
	}
	// What ended before anything that is still open began concurs with nothing any more.
	oldest := t.now
	for _, op := range t.open {
		oldest = min(oldest, op.Start)
	}
	t.extents = slices.DeleteFunc(t.extents, func(i Interval) bool { return i.End < oldest })
	if n := len(t.extents) - 4*t.options.Operations; n > 0 {
		t.extents = slices.Delete(t.extents, 0, n)
	}
}

// others is the most other calls that were under way at one instant of a call, each from
// its first exec to its last exit. Of those that go on, the last exit so far counts.
func (t *Timeline) others(call *Call) int {
	type edge struct {
		at   int64
		more int
	}
	var edges []edge
	add := func(start, end int64) {
		if start, end = max(start, call.Start), min(end, call.End); start < end {
			edges = append(edges, edge{start, 1}, edge{end, -1})
		}
	}
	for _, i := range t.extents {
		add(i.Start, i.End)
	}
	for _, op := range t.open {
		for _, c := range op.Calls {
			if c.live() != nil {
				add(c.Start, t.now)
			} else {
				add(c.Start, c.End)
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more))
	})
	most, now := 0, 0
	for _, e := range edges {
		now += e.more
		most = max(most, now)
	}
	return max(0, most-1) // itself is one of them
}
