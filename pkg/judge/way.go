package judge

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// step is something that an agent did or waited for while it was called.
type step struct {
	timeline.Interval
	// certain: it was done for this call, or nobody but the agent itself was in the way then.
	certain bool
	// filler: it says little about the answer, and counts only where no other step is.
	filler bool
}

// way finds the steps that lie on the way to an answer, which ends when: going backwards from there the one
// that ended last, then the one that ended last before that began, and so on. It returns when each of them
// counts, by the place of the step; nothing of those that are not on the way: whatever goes on beside it, has
// not ended by then, or has certain work beside it for more than half of the time.
//
// What an answer waits for has ended before it, and whoever does one thing because of another begins after
// that: as the kernel tells when, that is exact.
func way(steps []step, when timeline.Interval) []timeline.Interval {
	counts := make([]timeline.Interval, len(steps))
	var order []int
	for i, s := range steps {
		if s.End <= when.End && s.End > when.Start && (s.certain || beside(steps, s.Interval) <= (s.End-s.Start)/2) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(steps[b].End, steps[a].End), cmp.Compare(steps[a].Start, steps[b].Start))
	})
	back := func(within timeline.Interval, filler bool) (gaps []timeline.Interval) {
		now := within.End
		for _, i := range order {
			s := steps[i]
			if s.filler != filler || s.End > now || s.End <= within.Start {
				continue
			}
			gaps = append(gaps, timeline.Interval{Start: s.End, End: now})
			counts[i] = timeline.Interval{Start: max(s.Start, within.Start), End: s.End}
			now = counts[i].Start
		}
		return append(gaps, timeline.Interval{Start: within.Start, End: now})
	}
	for _, gap := range back(when, false) {
		back(gap, true)
	}
	return counts
}

// beside is how much of an interval has certain work beside it (ns).
func beside(steps []step, when timeline.Interval) (took int64) {
	var some []timeline.Interval
	for _, s := range steps {
		if s.certain && s.Start < when.End && s.End > when.Start {
			some = append(some, timeline.Interval{Start: max(s.Start, when.Start), End: min(s.End, when.End)})
		}
	}
	return covered(some)
}

// covered is how long at least one of some intervals lasts (ns).
func covered(all []timeline.Interval) (took int64) {
	slices.SortFunc(all, func(a, b timeline.Interval) int { return cmp.Compare(a.Start, b.Start) })
	for i, until := 0, int64(0); i < len(all); i++ {
		if i == 0 || all[i].Start > until {
			until = all[i].Start
		}
		if all[i].End > until {
			took, until = took+all[i].End-until, all[i].End
		}
	}
	return took
}
