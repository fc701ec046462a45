//go:build !linux && !windows

// Package clock reads the node's clocks, for packages at the edges.
package clock

import "time"

var start = time.Now()

// Monotonic returns ns, never set back.
func Monotonic() int64 { return int64(time.Since(start)) }

func realtime() int64 { return time.Now().UnixNano() }
