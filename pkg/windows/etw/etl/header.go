package etl

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
)

// Kinds of clocks (WNODE_HEADER.ClientContext).
const (
	clockSystem = 2 // system time in 100 ns
	clockCycles = 3 // CPU cycles
)

// Header is a part of TRACE_LOGFILE_HEADER.
type Header struct {
	// Start is a wall-clock time, Began the same in ns of the records' clock.
	Start time.Time
	Began int64
	// Events and buffers that Windows lost.
	EventsLost, BuffersLost uint32

	hz uint64
}

// Offsets in TRACE_LOGFILE_HEADER. Later fields start behind two pointers.
const (
	offsetPointer  = 44
	offsetLost     = 48
	offsetMHz      = 52
	offsetPointers = 56
	sizeofZone     = 176 // of a time zone, plus four bytes
)

func parseHeader(b []byte, raw uint64) (h Header, err error) {
	le := binary.LittleEndian
	if len(b) < offsetPointers {
		return h, formatError("its header is cut off")
	}
	pointer := int(le.Uint32(b[offsetPointer:]))
	if pointer != 4 && pointer != 8 {
		return h, formatError(fmt.Sprintf("it says that a pointer has %d bytes", pointer))
	}
	rest := b[offsetPointers:]
	// Pointers are invalid in a file.
	if len(rest) < 2*pointer+sizeofZone+8*3+4*2 {
		return h, formatError("its header is cut off")
	}
	rest = rest[2*pointer+sizeofZone:]
	h.Start, h.EventsLost, h.BuffersLost = fileTime(int64(le.Uint64(rest[16:]))), le.Uint32(b[offsetLost:]),
		le.Uint32(rest[28:])
	switch le.Uint32(rest[24:]) {
	case clockSystem:
		h.hz = 10_000_000
	case clockCycles:
		h.hz = uint64(le.Uint32(b[offsetMHz:])) * 1_000_000
	default: // QueryPerformanceCounter; unset in old files
		h.hz = le.Uint64(rest[8:])
	}
	if h.hz == 0 || h.hz > 1<<40 {
		return h, formatError("it does not say how fast its clock ticks")
	}
	if size := le.Uint32(b); size < sizeofBuffer || size > bufferMax {
		return h, formatError(fmt.Sprintf("it says that a buffer has %d bytes", size))
	}
	h.Began = h.nanoseconds(raw)
	return h, nil
}

// nanoseconds avoids overflow.
func (h *Header) nanoseconds(raw uint64) int64 {
	hi, lo := bits.Mul64(raw, 1_000_000_000)
	if hi >= h.hz {
		return 1<<63 - 1
	}
	ns, _ := bits.Div64(hi, lo, h.hz)
	return int64(min(ns, 1<<63-1))
}

// fileTime converts a FILETIME; an invalid one is the zero time.
func fileTime(t int64) time.Time {
	const to1970 = 116_444_736_000_000_000
	if t <= 0 {
		return time.Time{}
	}
	since := t - to1970
	return time.Unix(since/10_000_000, since%10_000_000*100).UTC()
}

// Magic is how many bytes Is needs.
const Magic = sizeofBuffer + 8

// Is reports whether a file begins like a trace.
func Is(begin []byte) bool {
	if len(begin) < Magic {
		return false
	}
	return beginsTrace(begin[sizeofBuffer:])
}

// beginsTrace reports whether a record is a system logger's first one, with the trace's header.
func beginsTrace(b []byte) bool {
	return (b[2] == 1 || b[2] == 2) && b[3]&flagHeader != 0 && b[6] == 0 && b[7] == 0
}
