package etl

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
	"unicode/utf16"
)

// Clock is what the records of a file are stamped by.
type Clock uint32

// The clocks (WNODE_HEADER.ClientContext).
const (
	ClockCounter Clock = 1 // QueryPerformanceCounter
	ClockSystem  Clock = 2 // the system time, in 100 ns
	ClockCycles  Clock = 3 // the CPU's cycles
)

// Header is what a file says of itself (TRACE_LOGFILE_HEADER).
type Header struct {
	// Start is when the trace began, End when it ended: zero if it never did.
	Start, End, Boot time.Time
	Clock            Clock
	// Began is Start in ns of the records' clock.
	Began int64
	// BufferSize is how many bytes a buffer of the session had.
	BufferSize int
	// Mode is how the session logged (EVENT_TRACE_*_MODE).
	Mode uint32
	// Pointer is how many bytes a pointer had: 4 or 8.
	Pointer int
	CPUs    int
	// BuffersWritten are in the file; EventsLost and BuffersLost are not.
	BuffersWritten, EventsLost, BuffersLost uint32
	// Session is the session's name.
	Session string

	// hz is how often the clock ticks in a second.
	hz uint64
}

// Offsets into TRACE_LOGFILE_HEADER, of those behind its two pointers from there.
const (
	offsetEnd      = 16
	offsetMode     = 32
	offsetWritten  = 36
	offsetPointer  = 44
	offsetLost     = 48
	offsetMHz      = 52
	offsetPointers = 56
	sizeofZone     = 176 // TIME_ZONE_INFORMATION, and four bytes more
)

// parseHeader reads the header; raw is the time of the record that it is in.
func parseHeader(b []byte, raw uint64) (h Header, err error) {
	le := binary.LittleEndian
	if len(b) < offsetPointers {
		return h, formatError("its header is cut off")
	}
	h = Header{
		BufferSize: int(le.Uint32(b)), CPUs: int(le.Uint32(b[12:])), End: FileTime(int64(le.Uint64(b[offsetEnd:]))),
		Mode: le.Uint32(b[offsetMode:]), BuffersWritten: le.Uint32(b[offsetWritten:]),
		Pointer: int(le.Uint32(b[offsetPointer:])), EventsLost: le.Uint32(b[offsetLost:]),
	}
	if h.Pointer != 4 && h.Pointer != 8 {
		return h, formatError(fmt.Sprintf("it says that a pointer has %d bytes", h.Pointer))
	}
	rest := b[offsetPointers:]
	// Of the pointers nothing is left, and two texts follow it all.
	if len(rest) < 2*h.Pointer+sizeofZone+8*3+4*2 {
		return h, formatError("its header is cut off")
	}
	rest = rest[2*h.Pointer+sizeofZone:]
	h.Boot, h.Start = FileTime(int64(le.Uint64(rest))), FileTime(int64(le.Uint64(rest[16:])))
	h.Clock, h.BuffersLost = Clock(le.Uint32(rest[24:])), le.Uint32(rest[28:])
	h.Session = wide(rest[32:])
	switch h.Clock {
	case ClockSystem:
		h.hz = 10_000_000
	case ClockCycles:
		h.hz = uint64(le.Uint32(b[offsetMHz:])) * 1_000_000
	default: // old files say nothing
		h.Clock, h.hz = ClockCounter, le.Uint64(rest[8:])
	}
	if h.hz == 0 || h.hz > 1<<40 {
		return h, formatError("it does not say how fast its clock ticks")
	}
	if h.BufferSize < sizeofBuffer || h.BufferSize > bufferMax {
		return h, formatError(fmt.Sprintf("it says that a buffer has %d bytes", h.BufferSize))
	}
	h.Began = h.nanoseconds(raw)
	return h, nil
}

// nanoseconds converts a record's time. The product does not overflow.
func (h *Header) nanoseconds(raw uint64) int64 {
	hi, lo := bits.Mul64(raw, 1_000_000_000)
	if hi >= h.hz {
		return 1<<63 - 1
	}
	ns, _ := bits.Div64(hi, lo, h.hz)
	return int64(min(ns, 1<<63-1))
}

// Wall is the calendar time of a record's time. A system that was suspended meanwhile, or whose time was set,
// is not taken into account.
func (h *Header) Wall(ns int64) time.Time { return h.Start.Add(time.Duration(ns - h.Began)) }

// FileTime converts a FILETIME: 100 ns since 1601, UTC; what is none is the zero time.
func FileTime(t int64) time.Time {
	const to1970 = 116_444_736_000_000_000
	if t <= 0 {
		return time.Time{}
	}
	since := t - to1970
	return time.Unix(since/10_000_000, since%10_000_000*100).UTC()
}

// wide reads a text in UTF-16 up to its zero, or to the end.
func wide(b []byte) string {
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		unit := binary.LittleEndian.Uint16(b)
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units))
}
