package clock

import "time"

// Anchor returns one instant in monotonic ns and ns since 1970: the tightest of 5 readings, since a preemption would
// shift every span.
func Anchor() (mono, wall int64) {
	best := int64(1 << 62)
	for range 5 {
		before, now, after := Monotonic(), realtime(), Monotonic()
		if after-before < best {
			best, mono, wall = after-before, before+(after-before)/2, now
		}
	}
	return mono, wall
}

// Tie reports when to publish the wall clock's offset again: it was set, or the node suspended. Zero is ready.
// Not for concurrent use.
type Tie struct{ mono, wall int64 }

const (
	// tiedFor bounds the error: NTP corrects less than 0.1 ms in it (500 ppm, adjtimex(2)).
	tiedFor = 100 * time.Millisecond
	// moved is a step: below NTP's steps (128 ms), above preemptions.
	moved = 10 * time.Millisecond
)

// Again reads both clocks as Anchor, and whether to publish them.
func (t *Tie) Again() (mono, wall int64, tell bool) {
	mono, wall = Anchor()
	return mono, wall, t.Due(mono, wall)
}

// Due is Again with given readings.
func (t *Tie) Due(mono, wall int64) (tell bool) {
	step := time.Duration((wall - mono) - (t.wall - t.mono))
	if tell = t.wall == 0 || mono-t.mono > int64(tiedFor) || step >= moved || step <= -moved; tell {
		t.mono, t.wall = mono, wall
	}
	return tell
}

// Time converts a monotonic time with Go's reading, so that its age survives clock changes.
func Time(mono int64) time.Time { return time.Now().Add(time.Duration(mono - Monotonic())) }

// Reset returns the instant by the current wall clock, if t has Go's reading.
func Reset(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	now := time.Now()
	return now.Add(t.Sub(now))
}
