package timeline

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/model"
)

// extents are the times of calls that are over, as far as they overlap with open operations.
type extents []model.Interval

// concur sets Call.Concurrent for the operations that are over. open are those that are not. It
// remembers at most limit calls.
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
	all := slices.Clone(*x)
	for _, op := range open {
		oldest = min(oldest, op.Start)
		for _, c := range op.Calls {
			if c.Live() != nil {
				all = append(all, model.Interval{Start: c.Start, End: now})
			} else {
				all = append(all, model.Interval{Start: c.Start, End: c.End})
			}
		}
	}
	for _, op := range over {
		for _, call := range op.Calls {
			call.Concurrent = others(call, all)
		}
	}
	// What ended before any open operation began overlaps with nothing to come.
	*x = slices.DeleteFunc(*x, func(i model.Interval) bool { return i.End < oldest })
	*x = slices.Delete(*x, 0, max(0, len(*x)-limit))
}

// others is the most other calls, of all, that were under way at one instant of a call, each
// from its first exec to its last exit. Of those that go on, the last exit so far counts.
func others(call *model.Call, all []model.Interval) int {
	type edge struct {
		at   int64
		more int
	}
	var edges []edge
	for _, i := range all {
		if start, end := max(i.Start, call.Start), min(i.End, call.End); start < end {
			edges = append(edges, edge{start, 1}, edge{end, -1})
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
