package probe

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/decode"
)

const (
	// dutiesEvery is the interval of duties and ticks, whatever the ring holds.
	dutiesEvery = 50 * time.Millisecond
	// skew is by how much a record may be older than the one before it in the ring: an interrupt or the host of a
	// virtual machine may take the CPU between a record's timestamp and its reservation. Chosen, not measured: a few
	// time slices of a host.
	skew = 20 * time.Millisecond
)

// watermark is the reader's progress, in monotonic ns.
type watermark struct {
	now int64
	// passed: every earlier record was read. It never decreases.
	passed int64
	// lag is by how much passed is behind now, if the reader cannot keep up; else 0.
	lag int64
}

// ring is a kernel.Ring.
type ring interface {
	Wait(until time.Time) error
	Next() (record []byte, more bool)
	Waiting() int
}

// schedule alternates between reading records and bounded duties, due every dutiesEvery, so that neither starves.
type schedule struct {
	ring  ring
	clock func() int64
	// until is when to stop waiting for a record; zero: never.
	until  func(now int64) time.Time
	take   func(now int64, raw []byte)
	duties func(watermark)

	passed, done int64 // done: last duties
	drained      bool  // the ring was empty at some time since done
}

// run returns when ctx ended and every earlier record was taken. The ring's reader must be woken when ctx ends.
func (s *schedule) run(ctx context.Context) error {
	var ended int64 // when ctx was seen to be done
	s.done = s.clock()
	for {
		now := s.clock()
		over := ctx.Err() != nil // read before the ring, so that every earlier record is read
		record, more := s.ring.Next()
		if more {
			s.passed = max(s.passed, decode.TimeOf(record)-int64(skew))
			s.take(now, record)
		} else {
			s.empty(now)
		}
		if now-s.done >= int64(dutiesEvery) {
			s.tend(now)
			switch {
			case ctx.Err() == nil:
			case ended == 0:
				ended = now
			case s.passed > ended: // a process keeps sending
				return nil
			}
		}
		if more {
			continue
		}
		if over {
			s.tend(s.clock())
			return nil
		}
		if err := s.ring.Wait(s.until(now)); errors.Is(err, os.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (s *schedule) empty(now int64) { s.passed, s.drained = max(s.passed, now-int64(skew)), true }

func (s *schedule) tend(now int64) {
	if s.ring.Waiting() == 0 {
		s.empty(now)
	}
	at := watermark{now: now, passed: s.passed}
	if lag := now - s.passed; !s.drained && lag > int64(dutiesEvery) {
		at.lag = lag
	}
	s.done, s.drained = now, false
	s.duties(at)
}
