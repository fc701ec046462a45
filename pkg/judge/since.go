package judge

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// sinceBefore extends waits for a halted process back over idle times, while another exchange with it was in
// progress.
//
// An agent may have asked on several streams, all answered when the process resumes; the way back has only the last,
// which may have begun late.
func (b *behind) sinceBefore(w *model.Work, steps []step, exchanges []*model.Connection, counts []model.Interval, when model.Interval) {
	underWay := notWhole(steps, exchanges, counts)
	var counting []int
	for i := range steps {
		if counts[i].End > counts[i].Start {
			counting = append(counting, i)
		}
	}
	slices.SortFunc(counting, func(x, y int) int { return cmp.Compare(counts[x].Start, counts[y].Start) })
	free := when.Start // nothing counts from here to the next that does
	var gaps []model.Interval
	for _, i := range counting {
		gaps = append(gaps, model.Interval{Start: free, End: counts[i].Start})
		free = counts[i].End
	}
	for n, i := range slices.Backward(counting) {
		if exchanges[i] == nil || exchanges[i].Agent == nil {
			continue
		}
		first, known := underWay[exchanges[i].Agent.Process]
		if !known {
			continue
		}
		c, since := exchanges[first], model.Interval{End: counts[i].Start}
		for _, gap := range slices.Backward(gaps[:n+1]) {
			gap.Start = max(gap.Start, steps[first].Start)
			if since.Start = gap.Start; gap.Start >= gap.End || steps[first].End < gap.End {
				continue
			}
			if !haltedSince(c, since, counts[i].End) {
				break
			}
			if !busy(w, gap) {
				b.exchanges[c] = slices.Insert(b.exchanges[c], 0, gap)
				delete(underWay, c.Agent.Process)
			}
		}
	}
}

// notWhole returns, by process, the exchange that began first, then ended last, among those that do not count wholly.
func notWhole(steps []step, exchanges []*model.Connection, counts []model.Interval) map[event.Process]int {
	all := map[event.Process]int{}
	for i, c := range exchanges {
		if c == nil || c.Work == nil || c.Agent.Process == "" || counts[i] == steps[i].Interval {
			continue
		}
		first, known := all[c.Agent.Process]
		if !known || cmp.Or(cmp.Compare(steps[i].Start, steps[first].Start), cmp.Compare(steps[first].End, steps[i].End)) < 0 {
			all[c.Agent.Process] = i
		}
	}
	return all
}

// haltedSince reports whether an agent was halted in every sample of an interval, and for most of the time until an
// instant after it.
func haltedSince(c *model.Connection, when model.Interval, until int64) bool {
	for _, s := range c.Work.Spent(when) {
		if !slices.Contains(halted, s.State) {
			return false
		}
	}
	return wasHalted(c, model.Interval{Start: when.Start, End: until})
}
