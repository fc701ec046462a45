package queue

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

// reporter says what people must know of an export, and says it seldom: a
// destination may be gone for days.
type reporter struct {
	log  *slog.Logger
	does string // what fails, or works again
	// failures is how many requests failed in a row, lostBefore what was lost before
	// the first of them.
	failures   int
	lostBefore uint64
	// lostSaid is how many lost items the log knows of.
	lostSaid  uint64
	lost      seldom
	refusals  seldom
	disk      seldom
	panicSaid bool
}

// seldom allows something once a minute.
type seldom struct{ next time.Time }

func (s *seldom) now(now time.Time) bool {
	if now.Before(s.next) {
		return false
	}
	s.next = now.Add(time.Minute)
	return true
}

// failed says that the destination is gone, at the second failure in a row: one
// alone is an ordinary restart or a lost packet.
func (r *reporter) failed(s Stats) {
	if r.failures++; r.failures == 1 {
		r.lostBefore = s.Lost()
	}
	if r.failures == 2 {
		r.log.Warn(r.does+" fails and will be tried again, what comes waits", "waiting", s.Waiting, "error", s.LastError)
	}
}

// works says that the destination is back, if it was said to be gone, and else
// what was lost while it was there.
func (r *reporter) works(now, since time.Time, s Stats) {
	lost := s.Lost()
	if r.failures >= 2 {
		r.log.Info(r.does+" works again",
			"failed_for", now.Sub(since).Round(time.Millisecond), "dropped", lost-r.lostBefore)
		r.lostSaid = lost
	}
	r.failures = 0
	if lost > r.lostSaid && r.lost.now(now) {
		r.log.Warn(r.does+" has lost something", "dropped", lost-r.lostSaid, "reasons", s.Dropped, "error", s.LastError)
		r.lostSaid = lost
	}
}

// refused says that the destination took spans only in part.
func (r *reporter) refused(now time.Time, s Stats) {
	if r.refusals.now(now) {
		r.log.Warn("the destination did not take all of it", "refused_spans", s.RefusedSpans, "error", s.LastError)
	}
}

// crashed shows the first panic as a whole; the others are counted.
func (r *reporter) crashed(err error) {
	if p := (*panicError)(nil); errors.As(err, &p) && !r.panicSaid {
		r.panicSaid = true
		r.log.Error("the exporter panicked: please report it", "error", text.Clean(p.Error(), 2*text.Bound), "stack", string(p.stack))
	}
}
