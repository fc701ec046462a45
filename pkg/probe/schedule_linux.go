package probe

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/decode"
)

const (
	// dutiesEvery is how often the reader does its duties and ticks, whatever the ring holds.
	dutiesEvery = 50 * time.Millisecond
	// skew is by how much a record may be older than one that lies before it in the ring: it
	// takes its time and then its place, and its CPU may be taken from it in between by an
	// interrupt or by the host of a virtual machine. Chosen, not measured: a few time slices of a host.
	skew = 20 * time.Millisecond
)

// watermark says how far the reader has come, in monotonic ns.
type watermark struct {
	now int64
	// passed: every record that was sent before has been read. It never goes back.
	passed int64
	// lag is how far passed is behind now, where that is more than from one tick to the next
	// and because there is more to read than the reader gets done; else 0.
	lag int64
}

// ring is where records are read from: a kernel.Ring.
type ring interface {
	Wait(until time.Time) error
	Next() (record []byte, more bool)
	Waiting() int
}

// schedule alternates between reading records and the reader's duties. Neither keeps the
// other from being done: duties are due every dutiesEvery, and are bounded.
type schedule struct {
	ring  ring
	clock func() int64
	// until is when to stop waiting for a record; zero for never.
	until func(now int64) time.Time
	// take is given one record, and duties how far that is.
	take   func(now int64, raw []byte)
	duties func(watermark)

	passed, done int64 // done is when the duties were done last
	drained      bool  // since then there was a moment when nothing was left to read
}

// run goes on until ctx ends and everything that was sent by then has been taken. Whoever
// ends ctx must wake the ring's reader, too.
func (s *schedule) run(ctx context.Context) error {
	var ended int64 // when ctx was found to be over
	s.done = s.clock()
	for {
		now := s.clock()
		over := ctx.Err() != nil // asked before the ring: what was sent until then is read
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
			case s.passed > ended: // more will come, from somebody who does not stop
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

// empty notes that nothing was left to read at some time after now.
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
