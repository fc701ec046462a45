package etw

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// joinWithin is how far the times of two records of the same start or end may lie apart: they are 1 µs apart
// where nobody takes the CPU in between. Nobody gets a process's number that soon after it.
const joinWithin = int64(10 * time.Millisecond)

// Sequencer makes one change of what both sessions tell of it, and has changes taken in the order of their times. It
// reads no clock, and is not safe for concurrent use.
type Sequencer struct {
	taker  Taker
	window int64
	// waiting are those whose turn has not come, by the process's number; in the order of first being told.
	waiting map[uint32][]*pending
	queued  []*pending
	passed  int64
	stats   Stats
}

// pending is a change that waits for its turn.
type pending struct {
	Change
	// told is by whom, and when they say that it was.
	told map[GUID]int64
	// order is that of being told first.
	order uint64
}

// NewSequencer returns a Sequencer. window is how long after its time a change waits: for the other session's
// word, and for what happened before and is told later.
func NewSequencer(t Taker, window time.Duration) *Sequencer {
	return &Sequencer{taker: t, window: int64(window), waiting: map[uint32][]*pending{}}
}

// Take takes what a record tells of a process. What remains or is defunct at a session's end is no change.
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

// companion is what waits for p: the same change of the same process, told by the other session.
func (s *Sequencer) companion(p Process) *pending {
	for _, w := range s.waiting[p.PID] {
		same := w.Present == (p.What == Present) && (w.Kind == proctracker.Ended) == (p.What == End)
		if _, told := w.told[p.Provider]; same && !told && (w.Present || abs(w.Time-p.Time) <= joinWithin) {
			return w
		}
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// add takes over what p tells. Kernel-Process is the better source of what both tell.
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
		w.Created, w.Cycles, w.Creator = p.Created, p.Cycles, p.Creator
	} else {
		w.CommandLine, w.User = p.CommandLine, p.User
	}
	if w.Kind == proctracker.Ended {
		if p.Provider == KernelProcess || first {
			w.Code = p.Code
		}
		return
	}
	w.Parent, w.Terminal = p.Parent, p.Terminal
}

// Lost takes that so many events could not be delivered.
func (s *Sequencer) Lost(n uint64) {
	if n > 0 {
		s.taker.Lost(n)
	}
}

// Advance has the changes taken whose turn has come at now.
func (s *Sequencer) Advance(now int64) {
	s.passed = max(s.passed, now-s.window)
	slices.SortFunc(s.queued, func(a, b *pending) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.order, b.order)) })
	due, _ := slices.BinarySearchFunc(s.queued, s.passed+1, func(w *pending, t int64) int { return cmp.Compare(w.Time, t) })
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

// Stats returns what was counted so far.
func (s *Sequencer) Stats() Stats { return s.stats }
