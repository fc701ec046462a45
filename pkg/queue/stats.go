package queue

import (
	"maps"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
)

// Reason names why an item was dropped.
type Reason string

// Reasons of drops.
const (
	Full     Reason = "queue full"
	Rejected Reason = "rejected"
	TooLarge Reason = "too large"
	Invalid  Reason = "invalid"
	Panicked Reason = "exporter panicked"
	Closed   Reason = "closed"
	// SwitchedOff means that the sender was removed while the item waited.
	SwitchedOff Reason = "switched off"
	SpoolFull   Reason = "spool full"
	SpoolOld    Reason = "too old"
	// Damaged counts damaged ranges of the spool, each of one or more items.
	Damaged Reason = "damaged on disk"
)

// Stats counts a queue's items since New.
type Stats struct {
	Name                  string
	Waiting, WaitingBytes int
	Spool                 *spool.Stats
	// Spooled counts items written to the spool, Unspooled those that could not be written.
	Spooled, Unspooled uint64
	Sent               uint64
	Dropped            map[Reason]uint64
	// Unwanted counts items added while there was neither a sender nor a spool.
	Unwanted uint64
	// RefusedSpans counts spans that the destination refused in operations that it accepted.
	RefusedSpans uint64
	Retries      uint64
	Panics       uint64
	// LastError and SpoolError are the latest, without control characters.
	LastError, SpoolError string
	// FailingSince is the time of the first failed request since the last success; zero after a success.
	FailingSince time.Time
}

func (s *Stats) drop(why Reason, n uint64) {
	if n > 0 {
		s.Dropped[why] += n
	}
}

// Lost returns the sum of Dropped.
func (s Stats) Lost() uint64 {
	var n uint64
	for _, d := range s.Dropped {
		n += d
	}
	return n
}

// Stats returns a snapshot.
func (q *Queue) Stats() Stats {
	var disk *spool.Stats
	if q.Spool != nil {
		now := q.Spool.Stats() // before locking, since it may wait for the disk
		disk = &now
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Dropped = maps.Clone(s.Dropped)
	s.Waiting, s.WaitingBytes, s.Spool = len(q.waiting.Held()), q.waiting.Size(), disk
	return s
}
