package probe

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/test/harness"
)

// fakeRing simulates records and time: reading a record takes perRecord.
type fakeRing struct {
	now       int64
	perRecord time.Duration
	// sent returns the time of the next record until now; false if there is none.
	sent func(now int64) (int64, bool)
	wait time.Duration
}

func (f *fakeRing) Waiting() int {
	if _, more := f.sent(f.now); more {
		return 1
	}
	return 0
}

func (f *fakeRing) Next() ([]byte, bool) {
	at, more := f.sent(f.now)
	if !more {
		return nil, false
	}
	f.now += int64(f.perRecord)
	return binary.NativeEndian.AppendUint64(make([]byte, 8), uint64(at)), true
}

func (f *fakeRing) Wait(time.Time) error {
	f.now += int64(f.wait)
	return nil
}

// of is a schedule of this ring, without duties.
func (f *fakeRing) of(sent *records) *schedule {
	return &schedule{
		ring: f, clock: func() int64 { return f.now }, until: func(int64) time.Time { return time.Time{} },
		take: func(_ int64, raw []byte) { sent.read(decode.TimeOf(raw)) }, duties: func(watermark) {},
	}
}

// scheduled runs a schedule for a while, and returns when it did its duties.
func scheduled(t *testing.T, f *fakeRing, sent *records, goOn time.Duration) (done []watermark) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f.now = int64(time.Hour)
	end := f.now + int64(goOn)
	f.sent = func(now int64) (int64, bool) { return sent.next(now) }
	sent.at = f.now
	s := f.of(sent)
	s.duties = func(at watermark) {
		if at.passed > sent.oldest() {
			t.Fatalf("at %s: said to have read all before %s, and there is a record of %s", time.Duration(at.now), time.Duration(at.passed), time.Duration(sent.oldest()))
		}
		done = append(done, at)
		if at.now >= end {
			cancel()
		}
	}
	harness.Check(t, s.run(ctx))
	return done
}

type records struct {
	every time.Duration
	at    int64 // of the next one
	n     int64
}

func (r *records) late() int64 { return r.n * 7919 % int64(skew) }

func (r *records) next(now int64) (int64, bool) {
	if r.every == 0 || r.at > now {
		return 0, false
	}
	return r.at - r.late(), true
}

func (r *records) read(int64) { r.at, r.n = r.at+int64(r.every), r.n+1 }

func (r *records) oldest() int64 {
	if r.every == 0 {
		return math.MaxInt64
	}
	return r.at - r.late()
}

func TestTheReaderDoesItsDutiesWhateverTheRingHolds(t *testing.T) {
	for name, test := range map[string]struct {
		perRecord, every time.Duration
		lags             bool
	}{
		"nothing is sent":                     {time.Microsecond, 0, false},
		"a record now and then":               {time.Microsecond, 10 * time.Millisecond, false},
		"as much as can be read":              {5 * time.Microsecond, 5 * time.Microsecond, false},
		"twice as much as can be read":        {10 * time.Microsecond, 5 * time.Microsecond, true},
		"records that take long to deal with": {20 * time.Millisecond, time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			ring := &fakeRing{perRecord: test.perRecord, wait: 5 * time.Millisecond}
			done := scheduled(t, ring, &records{every: test.every}, 4500*time.Millisecond)
			if len(done) < 60 {
				t.Fatalf("done %d times in 4.5 s", len(done))
			}
			for i := 1; i < len(done); i++ {
				if gap := time.Duration(done[i].now - done[i-1].now); gap > dutiesEvery+max(ring.wait, test.perRecord) {
					t.Fatalf("not done for %s", gap)
				}
			}
			if !slices.IsSortedFunc(done, func(a, b watermark) int { return int(a.passed - b.passed) }) {
				t.Error("the watermark goes back")
			}
			last := done[len(done)-2]
			if lags := last.lag > 0; lags != test.lags {
				t.Errorf("at the end it lags by %s", time.Duration(last.lag))
			}
			if test.lags && last.lag != last.now-last.passed {
				t.Errorf("it lags by %s, and says %s", time.Duration(last.now-last.passed), time.Duration(last.lag))
			}
			if !test.lags && last.now-last.passed > int64(dutiesEvery+skew) {
				t.Errorf("the last tick is %s old", time.Duration(last.now-last.passed))
			}
		})
	}
}

func TestTheReaderCatchesUp(t *testing.T) {
	ring := &fakeRing{perRecord: 10 * time.Microsecond, wait: 5 * time.Millisecond}
	sent := &records{every: 5 * time.Microsecond}
	ctx, cancel := context.WithCancel(t.Context())
	ring.now = int64(time.Hour)
	sent.at = ring.now
	stop := ring.now + int64(time.Second)
	ring.sent = func(now int64) (int64, bool) { return sent.next(min(now, stop)) }
	var most, last int64
	s := ring.of(sent)
	s.duties = func(at watermark) {
		most, last = max(most, at.lag), at.lag
		if at.now > stop+int64(2*time.Second) {
			cancel()
		}
	}
	harness.Check(t, s.run(ctx))
	if most < int64(400*time.Millisecond) || last != 0 {
		t.Errorf("it lagged by %s at most and by %s at the end", time.Duration(most), time.Duration(last))
	}
}

func TestTheReaderTakesWhatWasSentBeforeItsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ring := &fakeRing{now: int64(time.Hour)}
	sent, taken := false, 0
	ring.sent = func(now int64) (int64, bool) {
		if !sent {
			sent = true
			cancel()
			return 0, false
		}
		return now, taken == 0
	}
	s := ring.of(nil)
	s.take = func(int64, []byte) { taken++ }
	harness.Check(t, s.run(ctx))
	harness.Equal(t, taken, 1, "of one record that was sent before its end it took")
}

func TestTheLastRecordsAreReadAfterABlock(t *testing.T) {
	const every, block = 10 * time.Millisecond, 10 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := int64(time.Hour)
	ring, sent := &fakeRing{now: begin, wait: 5 * time.Millisecond}, &records{every: every, at: begin}
	ring.sent = sent.next
	var last, ended int64
	s := ring.of(sent)
	s.take = func(_ int64, raw []byte) {
		last = decode.TimeOf(raw)
		sent.read(last)
		ring.now += int64(dutiesEvery / 4)
		if ended == 0 && ring.now > begin+int64(time.Second) && ring.now-s.done > int64(dutiesEvery) {
			ring.now += int64(block)
			ended = ring.now
			cancel()
		}
	}
	harness.Check(t, s.run(ctx))
	if last < ended-int64(every+skew) {
		t.Errorf("the records of the last %s were not read", time.Duration(ended-last))
	}
}
