package judge

import (
	"cmp"
	"slices"
	"sort"

	"github.com/cniscope/cniscope/pkg/model"
)

type step struct {
	model.Interval
	// certain: it was for this call.
	certain bool
	// filler: it says little, and counts only where no other step is.
	filler bool
	// held: the awaited process was halted for most of it, so nothing continued without it, even if a later step began
	// before.
	held bool
}

// way finds the steps on the way to an answer at the end of when: backwards, the step that ended last, then the one
// that ended last before that began, and so on. It returns when each step counts, by index: not at all if it is
// unfinished, or beside certain work for most of its time.
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
			fillers = fillers[1:] // nor does it fit earlier gaps
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

func latest(steps []step, some []int) {
	slices.SortStableFunc(some, func(a, b int) int {
		return cmp.Or(cmp.Compare(steps[b].End, steps[a].End), cmp.Compare(steps[a].Start, steps[b].Start))
	})
}

// back goes back over steps, latest first, records when they count, and returns the gaps.
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

func covered(some []model.Interval) int64 {
	t := busyTimes{all: slices.Clone(some)}
	t.join()
	return t.before[len(t.all)]
}

// busyTimes are intervals, disjoint and sorted by join.
type busyTimes struct {
	all    []model.Interval
	before []int64 // total before each, and of all
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
