package export

import (
	"maps"
	"time"

	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/spool"
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
	// SpoolFull: the spool held all that it may.
	SpoolFull Reason = "spool full"
	// SpoolOld: it had been in the spool for too long.
	SpoolOld Reason = "too old"
	// Damaged: it could not be read from the spool. Each damaged stretch counts as one.
	Damaged Reason = "damaged on disk"
)

// Stats counts what became of the operations of a queue since it was made.
type Stats struct {
	Name string
	// Waiting is how many operations wait in memory now, those on their way included,
	// and WaitingBytes what they hold.
	Waiting, WaitingBytes int
	// Spool is the state of the spool; nil if there is none.
	Spool *spool.Stats
	// Spooled is how many were written to the spool, and Unspooled how many could not
	// be, and waited in memory.
	Spooled, Unspooled uint64
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
	// LastError is the last thing that went wrong with the destination, and SpoolError
	// with the spool; safe to print.
	LastError, SpoolError string
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

// Readings are the metrics that s is, at a moment.
func (s Stats) Readings(now time.Time) []meter.Reading {
	const destination = "destination"
	failing := 0.0
	if !s.FailingSince.IsZero() {
		failing = max(0, now.Sub(s.FailingSince).Seconds())
	}
	all := []meter.Reading{
		meter.Level("export_queue_operations", "Operations that wait for a destination, those on their way included.", s.Waiting, destination, s.Name),
		meter.Level("export_queue_bytes", "What they hold.", s.WaitingBytes, destination, s.Name),
		meter.Count("export_operations_sent_total", "Operations that have arrived.", s.Exported, destination, s.Name),
		meter.Count("export_retries_total", "Requests that failed and were, or will be, sent again.", s.Retries, destination, s.Name),
		meter.Count("export_spans_refused_total", "Spans that the destination refused of operations that it took.", s.RefusedSpans, destination, s.Name),
		meter.Count("export_panics_total", "Panics of an exporter that were survived.", s.Panics, destination, s.Name),
		meter.Level("export_failing_seconds", "For how long nothing has arrived although it was tried; 0 while all is well.", failing, destination, s.Name),
	}
	reasons := []Reason{Full, Rejected, TooLarge, Closed}
	if disk := s.Spool; disk != nil {
		reasons = append(reasons, SpoolFull, SpoolOld, Damaged)
		all = append(all,
			meter.Count("spool_operations_written_total", "Operations that were written to the spool.", s.Spooled, destination, s.Name),
			meter.Count("spool_operations_unwritten_total", "Operations that could not be written, and waited in memory.", s.Unspooled, destination, s.Name),
			meter.Level("spool_bytes", "What the spool holds, exported or not.", disk.Bytes, destination, s.Name),
			meter.Level("spool_waiting_bytes", "How much of that waits for the destination.", disk.Waiting, destination, s.Name))
	}
	return append(all, meter.ByReason("export_operations_dropped_total", "Kept operations that did not arrive.", s.Dropped, reasons, destination, s.Name)...)
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
