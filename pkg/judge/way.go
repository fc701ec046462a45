package judge

import (
	"cmp"
	"slices"
	"sort"

	"github.com/cniscope/cniscope/pkg/model"
)

// step is something that an agent did or waited for while it was called.
type step struct {
	model.Interval
	// certain: it was done for this call.
	certain bool
	// filler: it says little about the answer, and counts only where no other step is.
	filler bool
	// held: the process that was waited for was stopped or frozen for most of it. So nothing went on without that
	// process, also if a later step began before it was resumed.
	held bool
}

// way finds the steps that lie on the way to an answer, which ends when: going backwards from there the one
// that ended last, then the one that ended last before that began, and so on. It returns when each of them
// counts, by the place of the step; nothing of those that are not on the way: whatever goes on beside it, has
// not ended by then, or has certain work beside it for more than half of the time.
//
// What an answer waits for has ended before it, and whoever does one thing because of another begins after
// that: as the kernel tells when, that is exact.
func way(steps []step, when model.Interval) []model.Interval {
	var certain busyTimes
	for _, s := range steps {
		if s.certain {
			certain.all = append(certain.all, s.Interval)
		}
	}
	certain.join()
	var firm, fillers []int
	for i, s := range steps {
		switch {
		case s.End > when.End || s.End <= when.Start || !s.certain && certain.within(s.Interval) > (s.End-s.Start)/2:
		case s.filler:
			fillers = append(fillers, i)
		default:
			firm = append(firm, i)
		}
	}
	latest(steps, firm)
	latest(steps, fillers)
	counts := make([]model.Interval, len(steps))
	for _, gap := range back(steps, firm, when, counts) {
		for len(fillers) > 0 && steps[fillers[0]].End > gap.End {
			fillers = fillers[1:] // nor does it fit into what is earlier
		}
		n := 0
		for n < len(fillers) && steps[fillers[n]].End > gap.Start {
			n++
		}
		back(steps, fillers[:n], gap, counts)
		fillers = fillers[n:]
	}
	return counts
}

// latest sorts steps by their end, the last one first, and of those with one end the longest.
func latest(steps []step, some []int) {
	slices.SortStableFunc(some, func(a, b int) int {
		return cmp.Or(cmp.Compare(steps[b].End, steps[a].End), cmp.Compare(steps[a].Start, steps[b].Start))
	})
}

// back goes back from the end of an interval over some steps, the latest first, notes when they count, and
// returns what lies between them.
func back(steps []step, some []int, within model.Interval, counts []model.Interval) (gaps []model.Interval) {
	now := within.End
	for _, i := range some {
		s := steps[i]
		if s.held && s.Start < now {
			s.End = min(s.End, now)
		}
		if s.End > now {
			continue
		}
		gaps = append(gaps, model.Interval{Start: s.End, End: now})
		counts[i] = model.Interval{Start: max(s.Start, within.Start), End: s.End}
		now = counts[i].Start
	}
	return append(gaps, model.Interval{Start: within.Start, End: now})
}

// covered is how long at least one of some intervals lasts (ns).
func covered(some []model.Interval) int64 {
	t := busyTimes{all: slices.Clone(some)}
	t.join()
	if len(t.before) == 0 {
		return 0
	}
	return t.before[len(t.before)-1]
}

// busyTimes are intervals, of which join makes disjoint ones, in order.
type busyTimes struct {
	all    []model.Interval
	before []int64 // how long all lasted up to the beginning of each, and at last in all
}

func (t *busyTimes) join() {
	slices.SortFunc(t.all, func(a, b model.Interval) int { return cmp.Compare(a.Start, b.Start) })
	joined := t.all[:0]
	for _, i := range t.all {
		if n := len(joined); n > 0 && i.Start <= joined[n-1].End {
			joined[n-1].End = max(joined[n-1].End, i.End)
		} else if i.End > i.Start {
			joined = append(joined, i)
		}
	}
	t.all, t.before = joined, make([]int64, len(joined)+1)
	for n, i := range joined {
		t.before[n+1] = t.before[n] + i.End - i.Start
	}
}

// within is how much of an interval they take (ns).
func (t *busyTimes) within(when model.Interval) int64 {
	return t.until(when.End) - t.until(when.Start)
}

func (t *busyTimes) until(at int64) int64 {
	n := sort.Search(len(t.all), func(n int) bool { return t.all[n].Start >= at })
	if n == 0 {
		return 0
	}
	return t.before[n] - max(0, t.all[n-1].End-at)
}
