// Package clock reads the node's clocks. Only sources and other packages at the edges import it.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// start is one instant on both clocks.
var start = began()

type instant struct {
	mono int64
	at   time.Time
}

// began uses the tightest of 10 readings. The kernel's clock is read before Go's, so Monotonic is never ahead of the
// kernel and a tick never promises undelivered events.
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

// Monotonic returns the node's CLOCK_MONOTONIC in ns, which events carry (bpf_ktime_get_ns), in any time namespace.
// It uses Go's monotonic time, which needs no system call: an NRI handler could lose its CPU in one.
func Monotonic() int64 { return start.mono + int64(time.Since(start.at)) }

func kernel() int64 {
	var ts unix.Timespec
	// It cannot fail with a valid clock and pointer (clock_gettime(2)).
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano() - ours.mono
}

// Anchor returns one instant on both clocks: monotonic ns and ns since 1970. It uses the tightest of 5 readings,
// since a preemption between the clocks would shift every span.
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
