package probe

import (
	"slices"
	"time"
)

// missed is a closed gate's cost as lingering time: up to 1 ms of a plugin's start (chosen; Go plugins need longer to
// reach main).
const missed = 5 * time.Second

// shortestLinger covers one pod's calls; attaching again costs 13 ms.
const shortestLinger = time.Second

type linger struct {
	most time.Duration
	gaps []time.Duration
}

// gapsKept covers hours of a CronJob, or half a minute of a busy node.
const gapsKept = 16

func (l *linger) note(gap time.Duration) {
	if gap <= shortestLinger {
		return
	}
	if len(l.gaps) == gapsKept {
		l.gaps = slices.Delete(l.gaps, 0, 1)
	}
	l.gaps = append(l.gaps, gap)
}

// length minimizes the cost over the latest gaps; without any, up to twice the optimum.
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

func (l *linger) cost(length time.Duration) (all time.Duration) {
	for _, gap := range l.gaps {
		if all += min(gap, length); gap > length {
			all += missed
		}
	}
	return all
}
