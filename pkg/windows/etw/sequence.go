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
	queued []*pending
	byPID  map[uint32][]*pending // queued
	passed int64
	stats  Stats
}

type pending struct {
	Change
	told map[GUID]bool
}

// NewSequencer returns a Sequencer. window delays a change, for the other session's report and late earlier changes.
func NewSequencer(t Taker, window time.Duration) *Sequencer {
	return &Sequencer{taker: t, window: int64(window), byPID: map[uint32][]*pending{}}
}

// Take receives a decoded record.
func (s *Sequencer) Take(p Process) {
	if p.What != Start && p.What != End {
		return
	}
	s.stats.Events++
	kind := proctracker.Began
	if p.What == End {
		kind = proctracker.Ended
	}
	if i := slices.IndexFunc(s.byPID[p.PID], func(w *pending) bool {
		return w.Kind == kind && !w.told[p.Provider] && max(w.Time-p.Time, p.Time-w.Time) <= JoinWithin
	}); i >= 0 {
		s.byPID[p.PID][i].add(p)
		return
	}
	w := &pending{told: map[GUID]bool{}}
	w.Kind, w.PID = kind, p.PID
	w.add(p)
	if p.What == Start {
		s.taker.Soon(p.PID, p.Created)
	}
	if w.Time < s.passed {
		s.stats.Late++
	}
	s.queued = append(s.queued, w)
	s.byPID[p.PID] = append(s.byPID[p.PID], w)
}

// add merges one session's report; where both have a value, Kernel-Process has priority.
func (w *pending) add(p Process) {
	w.told[p.Provider] = true
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

// Lost counts and forwards lost events and buffers.
func (s *Sequencer) Lost(events, buffers uint64) {
	s.stats.LostEvents += events
	s.stats.LostBuffers += buffers
	if n := events + buffers; n > 0 {
		s.taker.Lost(n)
	}
}

// Advance delivers changes due at now.
func (s *Sequencer) Advance(now int64) {
	s.passed = max(s.passed, now-s.window)
	byTime := func(w *pending, t int64) int { return cmp.Compare(w.Time, t) }
	slices.SortStableFunc(s.queued, func(a, b *pending) int { return byTime(a, b.Time) })
	due, _ := slices.BinarySearchFunc(s.queued, s.passed+1, byTime)
	for _, w := range s.queued[:due] {
		s.stats.Changes++
		if len(w.told) == 1 {
			s.stats.Single++
		}
		s.taker.Take(w.Change)
		left := slices.DeleteFunc(s.byPID[w.PID], func(one *pending) bool { return one == w })
		if s.byPID[w.PID] = left; len(left) == 0 {
			delete(s.byPID, w.PID)
		}
	}
	s.queued = slices.Delete(s.queued, 0, due)
	s.taker.Advance(s.passed)
}

// Stats returns the counters.
func (s *Sequencer) Stats() Stats { return s.stats }
