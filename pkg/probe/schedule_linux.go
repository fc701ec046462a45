package probe

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/decode"
)

const (
	dutiesEvery = 50 * time.Millisecond
	// skew bounds the disorder of records: the CPU may be taken between timestamp and reservation.
	skew = 20 * time.Millisecond
)

// watermark is in monotonic ns.
type watermark struct {
	now int64
	// all records before this time were read; never decreases
	passed int64
	// now-passed if the reader cannot keep up, else 0
	lag int64
}

type ring interface {
	Wait(until time.Time) error
	Next() (record []byte, more bool)
	Waiting() int
}

// schedule alternates records and duties: neither starves.
type schedule struct {
	ring  ring
	clock func() int64
	// when to stop waiting; zero: never
	until  func(now int64) time.Time
	take   func(now int64, raw []byte)
	duties func(watermark)

	passed, done int64 // done: time of the last duties
	drained      bool  // the ring was empty once since done
}

// run returns when ctx ended, which must wake the ring, and earlier records were read.
func (s *schedule) run(ctx context.Context) error {
	var ended int64
	s.done = s.clock()
	for {
		now := s.clock()
		over := ctx.Err() != nil // before Next, to read earlier records
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
				ended = s.clock() // take may block
			case s.passed > ended: // endless sender
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
