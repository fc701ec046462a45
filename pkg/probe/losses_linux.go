package probe

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

type losses struct {
	kernel  *kernel.Side
	counted [kernel.LifeCounterCOUNTERS]uint64
	// reported losses by run; attributed is their sum by reason
	said       map[kernel.LifeLostKey]uint64
	attributed [kernel.LifeCounterCOUNTERS]uint64
}

// new reads the totals first, and the kernel side counts by run first, so each loss has its run.
func (l *losses) new() []*event.Lost {
	now := l.kernel.Counters()
	if now == l.counted {
		return nil
	}
	l.counted = now
	var lost []*event.Lost
	kernel.Each(l.kernel.Life.Losses, func(key *kernel.LifeLostKey, n *uint64) {
		before := l.said[*key]
		if *n < before { // evicted
			before = 0
		}
		if *n == before || key.Reason >= uint32(kernel.LifeCounterCOUNTERS) {
			return
		}
		l.said[*key] = *n
		l.attributed[key.Reason] += *n - before
		lost = append(lost, &event.Lost{
			Source: "probe", Reason: reasons[key.Reason], Count: *n - before, Process: kernel.ProcessOf(key.Root),
		})
	})
	for i, reason := range reasons {
		if ofNoCall[i] || now[i] <= l.attributed[i] {
			continue
		}
		lost = append(lost, &event.Lost{Source: "probe", Reason: reason, Count: now[i] - l.attributed[i]})
		l.attributed[i] = now[i]
	}
	return lost
}

func (l *losses) forget(live map[kernel.Key]bool) {
	kernel.Each(l.kernel.Life.Losses, func(key *kernel.LifeLostKey, n *uint64) {
		if !live[key.Root] && l.said[*key] == *n {
			_ = l.kernel.Life.Losses.Delete(*key)
		}
	})
	var n uint64
	for key := range l.said {
		if !live[key.Root] && errors.Is(l.kernel.Life.Losses.Lookup(key, &n), ebpf.ErrKeyNotExist) {
			delete(l.said, key)
		}
	}
}

var ofNoCall = [kernel.LifeCounterCOUNTERS]bool{
	kernel.LifeCounterCUT_ENV: true, kernel.LifeCounterLOST_SHARE: true, kernel.LifeCounterLOST_STARTS: true,
}

var reasons = [kernel.LifeCounterCOUNTERS]string{
	kernel.LifeCounterLOST_RING:    "ring full",
	kernel.LifeCounterLOST_TABLE:   "process table full",
	kernel.LifeCounterCUT_ENV:      "environment too long",
	kernel.LifeCounterLOST_CALLS:   "system call table full",
	kernel.LifeCounterLOST_SHARE:   "share of the process table full",
	kernel.LifeCounterLOST_QUOTA:   "over quota",
	kernel.LifeCounterLOST_CONNS:   "connection table full",
	kernel.LifeCounterLOST_STREAMS: "stream table full",
	kernel.LifeCounterLOST_STARTS:  "table of sandbox starts full",
}
