// Package clock reads the node's clocks, at the edges: the sources stamp events
// with it, nothing in the middle imports it.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns the nanoseconds of CLOCK_MONOTONIC, the clock of
// bpf_ktime_get_ns and so of every event.
func Monotonic() int64 {
	var ts unix.Timespec
	// It cannot fail with a valid clock and pointer (clock_gettime(2)).
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// Anchor returns one instant on both clocks: monotonic nanoseconds and
// nanoseconds since 1970. The tightest of a few readings, so that a preemption
// between the two clocks does not become an offset of every span.
func Anchor() (mono, wall int64) {
	best := int64(1 << 62)
	for range 5 {
		before := Monotonic()
		now := time.Now().UnixNano()
		after := Monotonic()
		if after-before < best {
			best, mono, wall = after-before, before+(after-before)/2, now
		}
	}
	return mono, wall
}
