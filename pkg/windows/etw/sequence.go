package etw

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// JoinWithin bounds the time between both records of one change, usually 1 µs without a context switch. No PID is
// reused within it.
const JoinWithin = int64(10 * time.Millisecond)

// Sequencer joins both sessions' reports by time. It is not safe for concurrent use.
type Sequencer struct {
	taker  Taker
	window int64
	// Waiting changes, by PID and in order of arrival.
	waiting map[uint32][]*pending
	queued  []*pending
	passed  int64
	stats   Stats
}

type pending struct {
	Change
	told  map[GUID]int64
	order uint64
}

// NewSequencer returns a Sequencer. window delays a change, for the other session's report and late earlier changes.
func NewSequencer(t Taker, window time.Duration) *Sequencer {
	return &Sequencer{taker: t, window: int64(window), waiting: map[uint32][]*pending{}}
}

// Take receives a decoded record.
func (s *Sequencer) Take(p Process) {
	if p.What != Start && p.What != End && p.What != Present {
		return
	}
	s.stats.Events++
	if w := s.companion(p); w != nil {
		w.add(p)
		return
	}
	w := &pending{told: map[GUID]int64{}, order: s.stats.Events}
	w.Kind, w.PID, w.Present = proctracker.Began, p.PID, p.What == Present
	if p.What == End {
		w.Kind = proctracker.Ended
	}
	w.add(p)
	if p.What == Start {
		s.taker.Soon(p.PID, p.Created)
	}
	if w.Time < s.passed {
		s.stats.Late++
	}
	s.waiting[p.PID] = append(s.waiting[p.PID], w)
	s.queued = append(s.queued, w)
}

func (s *Sequencer) companion(p Process) *pending {
	for _, w := range s.waiting[p.PID] {
		same := w.Present == (p.What == Present) && (w.Kind == proctracker.Ended) == (p.What == End)
		if _, told := w.told[p.Provider]; same && !told && (w.Present || abs(w.Time-p.Time) <= JoinWithin) {
			return w
		}
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// add merges one session's report; where both have a value, Kernel-Process has priority.
func (w *pending) add(p Process) {
	w.told[p.Provider] = p.Time
	first := len(w.told) == 1
	if p.Provider == KernelProcess || first {
		w.Time = p.Time
		if p.Image != "" {
			w.Image = p.Image
		}
	}
	if p.Provider == KernelProcess {
		w.Created = p.Created
	} else {
		w.CommandLine = p.CommandLine
	}
	switch {
	case w.Kind != proctracker.Ended:
		w.Parent = p.Parent
	case p.Provider == KernelProcess || first:
		w.Code = p.Code
	}
}

// Lost forwards lost events.
func (s *Sequencer) Lost(n uint64) {
	if n > 0 {
		s.taker.Lost(n)
	}
}

// Advance delivers changes due at now.
func (s *Sequencer) Advance(now int64) {
	s.passed = max(s.passed, now-s.window)
	slices.SortFunc(s.queued, func(a, b *pending) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.order, b.order))
	})
	byTime := func(w *pending, t int64) int { return cmp.Compare(w.Time, t) }
	due, _ := slices.BinarySearchFunc(s.queued, s.passed+1, byTime)
	for _, w := range s.queued[:due] {
		s.forget(w)
		s.stats.Changes++
		if len(w.told) == 1 {
			s.stats.Single++
		}
		s.taker.Take(w.Change)
	}
	s.queued = slices.Delete(s.queued, 0, due)
	s.taker.Advance(s.passed)
}

func (s *Sequencer) forget(w *pending) {
	left := slices.DeleteFunc(s.waiting[w.PID], func(o *pending) bool { return o == w })
	if s.waiting[w.PID] = left; len(left) == 0 {
		delete(s.waiting, w.PID)
	}
}

// Stats returns the counters.
func (s *Sequencer) Stats() Stats { return s.stats }
