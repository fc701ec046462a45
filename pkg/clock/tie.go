package clock

import "time"

// Tie reports when the offset between the monotonic and the wall clock is due: the wall clock may be set, and only it
// counts suspended time. The zero value is ready. It is not safe for concurrent use.
type Tie struct{ mono, wall int64 }

const (
	// tiedFor is the validity of an offset: NTP corrects a clock by less than 0.1 ms in that time (500 ppm,
	// adjtimex(2)).
	tiedFor = 100 * time.Millisecond
	// moved is the change of the offset that counts as a step. NTP steps a clock by 128 ms or more; a preemption
	// between the readings causes less.
	moved = 10 * time.Millisecond
)

// Again reads both clocks, in ns as Anchor does, and reports whether the caller must publish them: after tiedFor, or
// after a step.
func (t *Tie) Again() (mono, wall int64, tell bool) {
	mono, wall = Anchor()
	return mono, wall, t.Due(mono, wall)
}

// Due is Again for a caller that read both clocks itself.
func (t *Tie) Due(mono, wall int64) (tell bool) {
	step := time.Duration((wall - mono) - (t.wall - t.mono))
	if tell = t.wall == 0 || mono-t.mono > int64(tiedFor) || step >= moved || step <= -moved; tell {
		t.mono, t.wall = mono, wall
	}
	return tell
}

// Time returns the wall clock's time of a monotonic time. The result has Go's monotonic reading, so its age stays
// right if the clock is set later.
func Time(mono int64) time.Time { return time.Now().Add(time.Duration(mono - Monotonic())) }

// Reset returns the same instant by the wall clock as it is set now, if t has Go's monotonic reading. Zero stays
// zero.
func Reset(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	now := time.Now()
	return now.Add(t.Sub(now))
}
