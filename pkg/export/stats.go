package export

import (
	"maps"
	"time"
)

// Reason is why an operation was dropped.
type Reason string

// The reasons.
const (
	// Full: too many operations, or too many bytes, were waiting.
	Full Reason = "queue full"
	// Rejected: the destination refused it for good.
	Rejected Reason = "rejected"
	// TooLarge: it is more than a request may hold.
	TooLarge Reason = "too large"
	// Invalid: it cannot be encoded.
	Invalid Reason = "invalid"
	// Panicked: the exporter panicked over it.
	Panicked Reason = "exporter panicked"
	// Closed: it was still waiting, or came, when the queue was closed.
	Closed Reason = "closed"
	// SwitchedOff: it was waiting when the export was switched off.
	SwitchedOff Reason = "switched off"
)

// Stats counts what became of the operations of a queue since it was made.
type Stats struct {
	Name string
	// Waiting is how many operations wait now, those on their way included, and
	// WaitingBytes what they hold.
	Waiting, WaitingBytes int
	// Exported is how many have arrived.
	Exported uint64
	// Dropped is how many have not, by reason.
	Dropped map[Reason]uint64
	// RefusedSpans is how many spans of exported operations the destination refused.
	RefusedSpans uint64
	// Retries is how many requests failed and were, or will be, sent again.
	Retries uint64
	// Panics is how often the exporter panicked.
	Panics uint64
	// LastError is the last thing that went wrong; safe to print.
	LastError string
	// FailingSince is when the first request failed that nothing has arrived after;
	// zero while all is well.
	FailingSince time.Time
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
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Dropped = maps.Clone(s.Dropped)
	s.Waiting, s.WaitingBytes = len(q.items), q.bytes
	return s
}
