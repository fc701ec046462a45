//go:build !linux && !windows

// Package clock reads the node's clocks, at the edges: the sources stamp events
// with it, nothing in the middle imports it.
package clock

import "time"

var start = time.Now()

// Monotonic returns nanoseconds of a clock that is never set back.
func Monotonic() int64 { return int64(time.Since(start)) }

// Anchor returns one instant on both clocks: monotonic nanoseconds and
// nanoseconds since 1970.
func Anchor() (mono, wall int64) { return Monotonic(), time.Now().UnixNano() }
