// Package clock reads the node's clocks, for packages at the edges.
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

func perSecond(ask *windows.LazyProc) uint64 { return max(1, uint64(read(ask))) }

// read calls functions that never fail since Windows XP.
func read(ask *windows.LazyProc) (n int64) {
	_, _, _ = ask.Call(uintptr(unsafe.Pointer(&n)))
	return n
}

// Monotonic returns ns since the start, by QueryPerformanceCounter, ETW's clock. Go's moves only every 0.5 to 16 ms.
func Monotonic() int64 { return FromCounter(read(counter)) }

// FromCounter converts a QueryPerformanceCounter value.
func FromCounter(ticks int64) int64 {
	high, low := bits.Mul64(uint64(max(0, ticks)), 1e9)
	if high >= frequency {
		return 1<<63 - 1
	}
	ns, _ := bits.Div64(high, low, frequency)
	return int64(min(ns, 1<<63-1))
}

func realtime() int64 {
	var now windows.Filetime
	windows.GetSystemTimePreciseAsFileTime(&now)
	return now.Nanoseconds()
}
