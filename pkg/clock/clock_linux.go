// Package clock reads the node's clocks, at the edges: the sources stamp events
// with it, nothing in the middle imports it.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// start is one instant, as the kernel gives it and as Go keeps it.
var start = began()

type instant struct {
	mono int64
	at   time.Time
}

// began takes the tightest of a few readings, in this order: so Monotonic is never ahead
// of the kernel, and a tick never promises what is not delivered yet.
func began() (i instant) {
	best := time.Duration(1 << 62)
	for range 10 {
		before := time.Now()
		mono := kernel()
		at := time.Now()
		if gap := at.Sub(before); gap < best {
			best, i = gap, instant{mono, at}
		}
	}
	return i
}

// Monotonic returns the nanoseconds of the node's CLOCK_MONOTONIC, the clock of bpf_ktime_get_ns and so of every
// event, whatever time namespace this process is in. Go's own monotonic time is the same clock,
// read without a system call, in which a handler that pods wait for could lose its CPU.
func Monotonic() int64 { return start.mono + int64(time.Since(start.at)) }

func kernel() int64 {
	var ts unix.Timespec
	// It cannot fail with a valid clock and pointer (clock_gettime(2)).
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano() - ours.mono
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
