package probe

import (
	"slices"
	"time"
)

// missed is what it is worth to have system calls looked into when a call begins, in time for which they are: where
// they are not, up to a millisecond of the plugin's beginning may be missed, of which plugins written in Go need
// longer to get to main. Chosen, not measured.
const missed = 5 * time.Second

// shortestLinger is for the calls of one pod, which follow one another: to attach again at once takes 13 ms.
const shortestLinger = time.Second

// linger decides how long system calls go on to be looked into after a call, by how long it was from one call to
// the next lately: all the node's processes pay for it meanwhile, and nobody gains where the next call comes later.
type linger struct {
	most time.Duration
	gaps []time.Duration // the last ones that are longer than shortestLinger
}

// gapsKept is a few hours of a CronJob's, or half a minute of a busy node's.
const gapsKept = 16

// note takes that a call began so long after the one before was over.
func (l *linger) note(gap time.Duration) {
	if gap <= shortestLinger {
		return
	}
	if len(l.gaps) == gapsKept {
		l.gaps = slices.Delete(l.gaps, 0, 1)
	}
	l.gaps = append(l.gaps, gap)
}

// length is what would have cost least over the last gaps: the time it takes, and what was missed where it was
// too short. While nothing is known it is as long as a beginning is worth: then it costs no more than twice what
// it would have if the next call were foreseen.
func (l *linger) length() time.Duration {
	if len(l.gaps) == 0 {
		return min(missed, l.most)
	}
	best := shortestLinger
	for _, gap := range l.gaps {
		if enough := gap + gap/4; enough <= l.most && l.cost(enough) < l.cost(best) {
			best = enough
		}
	}
	return min(best, l.most)
}

// cost is what the last gaps would have cost.
func (l *linger) cost(length time.Duration) (all time.Duration) {
	for _, gap := range l.gaps {
		if all += min(gap, length); gap > length {
			all += missed
		}
	}
	return all
}
