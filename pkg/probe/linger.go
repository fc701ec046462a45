package probe

import (
	"slices"
	"time"
)

// missed is how long system calls may be looked into in vain to have them looked into when a call begins. Otherwise up
// to a millisecond of its plugin's beginning may go unseen; a plugin written in Go takes longer than that to reach
// main. Chosen, not measured.
const missed = 5 * time.Second

// shortestLinger is for the calls of one pod, which follow one another: to attach again at once takes 13 ms.
const shortestLinger = time.Second

// linger decides how long system calls are still looked into after a call, by how far calls were apart lately: all
// the node's processes pay for it meanwhile, and in vain if the next call comes later.
type linger struct {
	most time.Duration
	gaps []time.Duration // the last ones that are longer than shortestLinger
}

// gapsKept is a few hours of a CronJob's, or half a minute of a busy node's.
const gapsKept = 16

// note remembers how long after the end of the call before it a call began.
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
