package queue

import (
	"maps"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
)

// Reason is why an item was dropped.
type Reason string

// The reasons.
const (
	// Full: too many items, or too many bytes, were waiting.
	Full Reason = "queue full"
	// Rejected: the destination refused it for good.
	Rejected Reason = "rejected"
	// TooLarge: it is more than a request may hold.
	TooLarge Reason = "too large"
	// Invalid: it cannot be encoded.
	Invalid Reason = "invalid"
	// Panicked: the sender panicked over it.
	Panicked Reason = "exporter panicked"
	// Closed: it was still waiting, or came, when the queue was closed.
	Closed Reason = "closed"
	// SwitchedOff: it was waiting when there was no sender any more.
	SwitchedOff Reason = "switched off"
	// SpoolFull: the spool held all that it may.
	SpoolFull Reason = "spool full"
	// SpoolOld: it had been in the spool for too long.
	SpoolOld Reason = "too old"
	// Damaged: it could not be read from the spool. Each damaged stretch counts as one.
	Damaged Reason = "damaged on disk"
)

// Stats counts what became of the items of a queue since it was made.
type Stats struct {
	Name string
	// Waiting is how many items wait in memory now, those on their way included,
	// and WaitingBytes what they hold.
	Waiting, WaitingBytes int
	// Spool is the state of the spool; nil if there is none.
	Spool *spool.Stats
	// Spooled is how many were written to the spool, and Unspooled how many could not
	// be, and waited in memory.
	Spooled, Unspooled uint64
	// Sent is how many have arrived.
	Sent uint64
	// Dropped is how many have not, by reason.
	Dropped map[Reason]uint64
	// Unwanted is how many came while there was no sender, and no spool either.
	Unwanted uint64
	// RefusedSpans is how many spans of operations sent the destination refused.
	RefusedSpans uint64
	// Retries is how many requests failed and were, or will be, sent again.
	Retries uint64
	// Panics is how often the sender panicked.
	Panics uint64
	// LastError is the last thing that went wrong with the destination, and SpoolError
	// with the spool; safe to print.
	LastError, SpoolError string
	// FailingSince is when the first request failed that nothing has arrived after; zero while all is well.
	FailingSince time.Time
}

func (s *Stats) drop(why Reason, n uint64) {
	if n > 0 {
		s.Dropped[why] += n
	}
}

// Lost is the sum of Dropped.
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
		now := q.Spool.Stats() // without the lock: it may wait for the disk
		disk = &now
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Dropped = maps.Clone(s.Dropped)
	s.Waiting, s.WaitingBytes, s.Spool = len(q.items)+len(q.incoming), q.bytes, disk
	return s
}
