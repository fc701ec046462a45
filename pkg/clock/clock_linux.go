// Package clock reads the node's clocks, for packages at the edges.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

var start = began()

type instant struct {
	mono int64
	at   time.Time
}

// began returns the tightest of 10 readings. It reads the kernel's clock first: with Monotonic ahead, a tick would
// promise undelivered events.
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

// Monotonic returns the node's CLOCK_MONOTONIC in ns, as bpf_ktime_get_ns does, in any time namespace, without a system
// call, in which an NRI handler could lose its CPU.
func Monotonic() int64 { return start.mono + int64(time.Since(start.at)) }

func kernel() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano() - ours.mono
}

func realtime() int64 { return time.Now().UnixNano() }
