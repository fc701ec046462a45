package clock

import "time"

// Tie reports when to publish the wall clock's offset again: it may be set, and counts suspended time. The zero value
// is ready. It is not safe for concurrent use.
type Tie struct{ mono, wall int64 }

const (
	// NTP corrects less than 0.1 ms in that time (500 ppm, adjtimex(2)).
	tiedFor = 100 * time.Millisecond
	// NTP steps by 128 ms or more; a preemption causes less.
	moved = 10 * time.Millisecond
)

// Again reads both clocks and reports whether to publish them.
func (t *Tie) Again() (mono, wall int64, tell bool) {
	mono, wall = Anchor()
	return mono, wall, t.Due(mono, wall)
}

// Due is Again for a caller that read both clocks.
func (t *Tie) Due(mono, wall int64) (tell bool) {
	step := time.Duration((wall - mono) - (t.wall - t.mono))
	if tell = t.wall == 0 || mono-t.mono > int64(tiedFor) || step >= moved || step <= -moved; tell {
		t.mono, t.wall = mono, wall
	}
	return tell
}

// Time converts a monotonic time; its age survives a change of the clock, by Go's monotonic reading.
func Time(mono int64) time.Time { return time.Now().Add(time.Duration(mono - Monotonic())) }

// Reset returns the same instant by the wall clock's current setting, if t has Go's monotonic reading.
func Reset(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	now := time.Now()
	return now.Add(t.Sub(now))
}
