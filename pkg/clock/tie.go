package clock

import "time"

// Tie ties the monotonic clock to the wall's, again and again: the wall's clock may be set, and a node be suspended, which
// only the wall's clock counts. The zero value is ready. It is not safe for concurrent use.
type Tie struct{ mono, wall int64 }

const (
	// tiedFor is for how long both are taken to be as far apart as they were: less than 0.1 ms is what NTP corrects a
	// clock by meanwhile (500 parts in a million, adjtimex(2)).
	tiedFor = 100 * time.Millisecond
	// moved is by how much they must have moved against each other for a step of one of them. NTP steps a clock from
	// 128 ms on; below is what a reader is off by that loses its CPU.
	moved = 10 * time.Millisecond
)

// Again reads both clocks, in ns as Anchor does, and reports whether that is to be told: where it was not for a
// while, and at once where one of them was set.
func (t *Tie) Again() (mono, wall int64, tell bool) {
	mono, wall = Anchor()
	return mono, wall, t.Due(mono, wall)
}

// Due is Again for who has read both clocks.
func (t *Tie) Due(mono, wall int64) (tell bool) {
	step := time.Duration((wall - mono) - (t.wall - t.mono))
	if tell = t.wall == 0 || mono-t.mono > int64(tiedFor) || step >= moved || step <= -moved; tell {
		t.mono, t.wall = mono, wall
	}
	return tell
}

// Time returns when an instant of the monotonic clock was, by the wall's clock as it is set now. The result keeps Go's
// reading of the monotonic clock, so that its age is right after the clock was set once more.
func Time(mono int64) time.Time { return time.Now().Add(time.Duration(mono - Monotonic())) }

// Reset returns the same instant by the wall's clock as it is set now, if t has Go's reading of the monotonic clock.
// Zero stays zero.
func Reset(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	now := time.Now()
	return now.Add(t.Sub(now))
}
