package etl

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
	"unicode/utf16"
)

// Clock is the clock of a file's records.
type Clock uint32

// Clocks (WNODE_HEADER.ClientContext).
const (
	ClockCounter Clock = 1 // QueryPerformanceCounter
	ClockSystem  Clock = 2 // the system time, in 100 ns
	ClockCycles  Clock = 3 // the CPU's cycles
)

// Header is the file's TRACE_LOGFILE_HEADER.
type Header struct {
	// Start and End bound the trace; End is zero if the session was not stopped.
	Start, End, Boot time.Time
	Clock            Clock
	// Began is Start in ns of the records' clock.
	Began int64
	// BufferSize is the session's buffer size in bytes.
	BufferSize int
	// Mode is the session's log mode (EVENT_TRACE_*_MODE).
	Mode uint32
	// Pointer is the pointer size: 4 or 8.
	Pointer int
	CPUs    int
	// BuffersWritten counts buffers in the file, EventsLost and BuffersLost lost ones.
	BuffersWritten, EventsLost, BuffersLost uint32
	Session                                 string

	// hz is the clock's frequency.
	hz uint64
}

// Offsets in TRACE_LOGFILE_HEADER; those of later fields start behind its two pointers.
const (
	offsetEnd      = 16
	offsetMode     = 32
	offsetWritten  = 36
	offsetPointer  = 44
	offsetLost     = 48
	offsetMHz      = 52
	offsetPointers = 56
	sizeofZone     = 176 // TIME_ZONE_INFORMATION plus four bytes
)

// parseHeader parses the header; raw is its record's time.
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
	// Pointers are invalid in a file. Two texts follow the header.
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
	default: // not set in old files
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

// nanoseconds converts a record's time without overflow.
func (h *Header) nanoseconds(raw uint64) int64 {
	hi, lo := bits.Mul64(raw, 1_000_000_000)
	if hi >= h.hz {
		return 1<<63 - 1
	}
	ns, _ := bits.Div64(hi, lo, h.hz)
	return int64(min(ns, 1<<63-1))
}

// Wall converts a record's time to wall-clock time, ignoring suspends and clock changes.
func (h *Header) Wall(ns int64) time.Time { return h.Start.Add(time.Duration(ns - h.Began)) }

// FileTime converts a FILETIME (100 ns since 1601, UTC); an invalid one is the zero time.
func FileTime(t int64) time.Time {
	const to1970 = 116_444_736_000_000_000
	if t <= 0 {
		return time.Time{}
	}
	since := t - to1970
	return time.Unix(since/10_000_000, since%10_000_000*100).UTC()
}

// wide reads a UTF-16 text up to its NUL or the end.
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
