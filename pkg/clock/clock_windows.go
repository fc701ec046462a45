// Package clock reads the node's clocks, at the edges: the sources stamp events
// with it, nothing in the middle imports it.
package clock

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32  = windows.NewLazySystemDLL("kernel32.dll")
	counter   = kernel32.NewProc("QueryPerformanceCounter")
	frequency = perSecond(kernel32.NewProc("QueryPerformanceFrequency"))
)

// perSecond is how often a second the counter ticks: 10,000,000 since Windows 10.
func perSecond(ask *windows.LazyProc) uint64 { return max(1, uint64(read(ask))) }

// read calls a function that writes a 64-bit number to where its argument points, and never fails since
// Windows XP (QueryPerformanceCounter, QueryPerformanceFrequency).
func read(ask *windows.LazyProc) (n int64) {
	_, _, _ = ask.Call(uintptr(unsafe.Pointer(&n)))
	return n
}

// Monotonic returns nanoseconds since the machine started, by QueryPerformanceCounter, which events of
// ETW are stamped with, too. Go's own monotonic clock moves with the system's timer, every 0.5 to 16 ms.
func Monotonic() int64 { return FromCounter(read(counter)) }

// FromCounter returns what Monotonic returned when QueryPerformanceCounter was at ticks.
func FromCounter(ticks int64) int64 {
	high, low := bits.Mul64(uint64(max(0, ticks)), 1e9)
	if high >= frequency { // more than 292 years
		return 1<<63 - 1
	}
	ns, _ := bits.Div64(high, low, frequency)
	return int64(min(ns, 1<<63-1))
}

// Anchor returns one instant on both clocks: monotonic nanoseconds and
// nanoseconds since 1970. The tightest of a few readings, so that a preemption
// between the two clocks does not become an offset of every span.
func Anchor() (mono, wall int64) {
	best := int64(1 << 62)
	for range 5 {
		var now windows.Filetime
		before := Monotonic()
		windows.GetSystemTimePreciseAsFileTime(&now)
		after := Monotonic()
		if after-before < best {
			best, mono, wall = after-before, before+(after-before)/2, now.Nanoseconds()
		}
	}
	return mono, wall
}
