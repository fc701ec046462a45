package winproc

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Snapshots compares process tables. It misses processes between two.
type Snapshots struct {
	system   System
	last     map[uint32]Entry
	taken    uint64
	spent    time.Duration
	interval time.Duration
	// cheapest is the fastest snapshot's time, which excludes preemption.
	cheapest time.Duration
	changed  func(time.Duration)
}

// intervals are tried in order; the first within the CPU share is used.
var intervals = []time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond,
}

const (
	// Snapshots may use 1/share of a CPU's time.
	share = 20
	// Snapshots until the interval is adapted.
	weighEvery = 64
)

// NewSnapshots returns a Teller; changed receives each new interval.
func NewSnapshots(system System, changed func(time.Duration)) *Snapshots {
	return &Snapshots{system: system, interval: intervals[0], changed: changed}
}

// Run implements Teller.
func (s *Snapshots) Run(ctx context.Context, t etw.Taker) error {
	s.changed(s.interval)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := s.round(t); err != nil {
			return err
		}
		if s.taken%weighEvery == 0 {
			s.weigh(s.cheapest)
			s.cheapest = 0
		}
		timer.Reset(s.interval)
	}
}

func (s *Snapshots) weigh(cost time.Duration) {
	i := slices.IndexFunc(intervals, func(d time.Duration) bool { return cost*share <= d })
	if i < 0 {
		i = len(intervals) - 1
	}
	if intervals[i] != s.interval {
		s.interval = intervals[i]
		s.changed(s.interval)
	}
}

// The first round only notes present processes.
func (s *Snapshots) round(t etw.Taker) error {
	began, wall := s.system.Clocks()
	all, err := s.system.Processes()
	if err != nil {
		return err
	}
	after, _ := s.system.Clocks()
	s.taken++
	cost := time.Duration(after - began)
	s.spent += cost
	if s.cheapest == 0 || cost < s.cheapest {
		s.cheapest = cost
	}
	for _, c := range s.compare(all, began, wall-began) {
		t.Take(c)
	}
	t.Advance(began)
	return nil
}

// compare returns changes by time, parents first. ahead is the wall clock minus the monotonic clock.
func (s *Snapshots) compare(all []Entry, now, ahead int64) (changes []etw.Change) {
	there := make(map[uint32]Entry, len(all))
	for _, e := range all {
		there[e.PID] = e
	}
	for pid, e := range s.last {
		n := there[pid]
		if n.Created == e.Created {
			continue
		}
		ended := now
		if n.Created != 0 {
			ended = min(now, n.Created.unix()-ahead)
		}
		changes = append(changes, change(proctracker.Ended, e, ended))
	}
	if s.last != nil {
		for _, e := range all {
			if before, is := s.last[e.PID]; !is || before.Created != e.Created {
				changes = append(changes, change(proctracker.Began, e, min(now, e.Created.unix()-ahead)))
			}
		}
	}
	s.last = there
	slices.SortStableFunc(changes, func(a, b etw.Change) int { // an end precedes its PID's reuse
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Created, b.Created))
	})
	return changes
}

func change(kind proctracker.Kind, e Entry, at int64) etw.Change {
	c := etw.Change{Notice: proctracker.Notice{Kind: kind, Time: at, PID: e.PID}, Created: int64(e.Created), Image: e.Name}
	if kind == proctracker.Began {
		c.Parent = e.Parent
	}
	return c
}

func base(file string) string { return file[strings.LastIndexAny(file, `\/`)+1:] }
