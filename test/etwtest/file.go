package etwtest

import (
	"bytes"
	"encoding/binary"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// File is a trace in .etl format. The zero File is from a 64-bit machine with a performance counter of 10 MHz.
type File struct {
	// Pointer is the pointer size, Clock the clock; default 8 and 1.
	Pointer int
	Clock   uint32
	// Hz is the clock's frequency; default 10,000,000.
	Hz uint64
	// Began is the clock at the trace's start, Start the FILETIME.
	Began, Start uint64
	// EventsLost and BuffersLost are the header's counters.
	EventsLost, BuffersLost uint32
	// Size is the buffer size; default 65536. Compress compresses buffers, to their actual length.
	Size     int
	Compress bool
	// Buffers hold records, each on its own CPU.
	Buffers [][]byte
}

// Bytes returns the file.
func (f File) Bytes() []byte {
	if f.Pointer == 0 {
		f.Pointer = 8
	}
	if f.Clock == 0 {
		f.Clock = 1
	}
	if f.Hz == 0 {
		f.Hz = 10_000_000
	}
	if f.Size == 0 {
		f.Size = 65536
	}
	header := Payload(f.Pointer, Fields{
		uint32(f.Size), uint32(0x05010000), uint32(20348), uint32(len(f.Buffers)), f.Start + 600_000_000,
		uint32(156250), uint32(0), uint32(1), uint32(len(f.Buffers) + 1), uint32(1), uint32(f.Pointer), f.EventsLost,
		uint32(f.Hz / 1_000_000), Pointer(0), Pointer(0), make([]byte, 176), f.Start - 1, f.Hz, f.Start,
		f.Clock, f.BuffersLost, "Test", "test.etl",
	})
	first := System64(0, 0, 2, f.Began, header)
	all := buffer(first, first, 4, 0, f.size(first))
	for cpu, records := range f.Buffers {
		as := records
		if f.Compress {
			as = Compress(records)
		}
		all = append(all, buffer(records, as, 0, uint16(cpu), f.size(as))...)
	}
	return all
}

func (f File) size(records []byte) int {
	if f.Compress {
		return 72 + len(records)
	}
	return f.Size
}

// buffer returns WMI_BUFFER_HEADER with records, raw or compressed.
func buffer(records, as []byte, kind, cpu uint16, size int) []byte {
	used, flags := 72+len(records), uint16(0x20)
	if !bytes.Equal(records, as) {
		flags = 0x60
	}
	b := Payload(8, Fields{
		uint32(size), uint32(used), uint32(used), uint32(0), uint64(0), uint64(0), uint64(0), cpu, uint16(1), uint32(3),
		uint32(used), flags, kind, uint64(0), uint64(0),
	})
	b = append(b, as...)
	return append(b, make([]byte, size-len(b))...)
}

// align pads to the next record's offset.
func align(b []byte) []byte { return append(b, make([]byte, -len(b)&7)...) }

// System64 returns a record with SYSTEM_TRACE_HEADER; group 3 is processes.
func System64(group, opcode uint8, version uint16, time uint64, payload []byte) []byte {
	return align(Payload(8, Fields{
		version, uint16(0xc002), uint16(32 + len(payload)), []byte{opcode, group}, uint64(0), time, uint64(0), payload,
	}))
}

// Compact64 returns a record with a compact SYSTEM_TRACE_HEADER, without thread times.
func Compact64(group, opcode uint8, version uint16, time uint64, payload []byte) []byte {
	return align(Payload(8, Fields{
		version, uint16(0xc004), uint16(24 + len(payload)), []byte{opcode, group}, uint64(0), time, payload,
	}))
}

// PerfInfo returns a record with PERFINFO_TRACE_HEADER, which has no process.
func PerfInfo(pointer int, group, opcode uint8, version uint16, time uint64, payload []byte) []byte {
	marker := uint16(0xc011)
	if pointer == 4 {
		marker = 0xc010
	}
	return align(Payload(8, Fields{version, marker, uint16(16 + len(payload)), []byte{opcode, group}, time, payload}))
}

// Full64 returns a classic event with EVENT_TRACE_HEADER.
func Full64(r etw.Record) []byte { return full(r, 0xc014, nil) }

// Instance64 returns a classic event with EVENT_INSTANCE_GUID_HEADER.
func Instance64(r etw.Record) []byte { return full(r, 0xc015, make([]byte, 24)) }

func full(r etw.Record, marker uint16, more []byte) []byte {
	return align(Payload(8, Fields{
		uint16(48 + len(more) + len(r.Payload)), marker,
		[]byte{r.Opcode, 4},
		uint16(r.Version), uint32(0), uint32(0), uint64(r.Time),
		r.Provider[:], uint64(0), more, r.Payload,
	}))
}

// Event64 returns an event with EVENT_HEADER and items of the given lengths.
func Event64(r etw.Record, items ...int) []byte {
	var extended []byte
	for i, n := range items {
		extended = append(extended, item(1, i < len(items)-1, make([]byte, n))...)
	}
	return event64(r, extended)
}

// item returns an EVENT_HEADER_EXTENDED_DATA_ITEM; more: another follows.
func item(kind uint16, more bool, data []byte) []byte {
	linkage := uint16(0)
	if more {
		linkage = 1
	}
	return align(Payload(8, Fields{uint16(0), kind, linkage, uint16(len(data)), data}))
}

func event64(r etw.Record, extended []byte) []byte {
	flags := uint16(0x40)
	if len(extended) > 0 {
		flags |= 1
	}
	return align(Payload(8, Fields{
		uint16(80 + len(extended) + len(r.Payload)), uint16(0xc013), flags, uint16(0), uint32(0), uint32(0), uint64(r.Time),
		r.Provider[:], r.ID,
		[]byte{r.Version, 0, 4, r.Opcode},
		uint16(0), uint64(0), uint64(0), make([]byte, 16),
		extended, r.Payload,
	}))
}

// Message returns a WPP message.
func Message(n int) []byte {
	return align(Payload(8, Fields{uint16(8 + n), uint16(0x9000), uint32(0), make([]byte, n)}))
}

// Entry returns r as a record of a file, with Time in ticks.
func Entry(r etw.Record) []byte {
	if r.Provider == etw.SystemProcess {
		return System64(3, r.Opcode, uint16(r.Version), uint64(r.Time), r.Payload)
	}
	return Event64(r)
}

// Compress compresses with plain LZ77 ([MS-XCA] 2.3), with a window of 8 KB.
func Compress(in []byte) (out []byte) {
	le := binary.LittleEndian
	seen := map[[3]byte]int{}
	flagsAt, bits, flags, half := 0, 32, uint32(0), 0
	flush := func() {
		if bits < 32 {
			le.PutUint32(out[flagsAt:], flags<<(32-bits)|(1<<(32-bits)-1))
		}
	}
	flag := func(bit uint32) {
		if bits == 32 {
			if len(out) > 0 {
				le.PutUint32(out[flagsAt:], flags)
			}
			flagsAt, bits, flags = len(out), 0, 0
			out = append(out, 0, 0, 0, 0)
		}
		flags, bits = flags<<1|bit, bits+1
	}
	for at := 0; at < len(in); {
		length, distance := 0, 0
		if at+3 <= len(in) {
			here := [3]byte(in[at:])
			if before, ok := seen[here]; ok && at-before <= 8192 {
				for distance = at - before; at+length < len(in) && in[at+length] == in[at+length-distance]; {
					length++
				}
			}
			seen[here] = at
		}
		if length < 3 {
			flag(0)
			out = append(out, in[at])
			at++
			continue
		}
		flag(1)
		out, half = match(out, half, length, distance)
		at += length
	}
	if bits == 32 { // the unused last flags end the data
		if len(out) > 0 {
			le.PutUint32(out[flagsAt:], flags)
		}
		return append(out, 0xff, 0xff, 0xff, 0xff)
	}
	flush()
	return out
}

// match appends a match; half is the offset of a free length nibble, or 0.
func match(out []byte, half, length, distance int) ([]byte, int) {
	le := binary.LittleEndian
	length -= 3
	out = le.AppendUint16(out, uint16((distance-1)<<3|min(length, 7)))
	if length < 7 {
		return out, half
	}
	length -= 7
	if half == 0 {
		half = len(out)
		out = append(out, byte(min(length, 15)))
	} else {
		out[half] |= byte(min(length, 15) << 4)
		half = 0
	}
	if length < 15 {
		return out, half
	}
	length -= 15
	if length < 255 {
		return append(out, byte(length)), half
	}
	length += 15 + 7
	out = append(out, 255)
	if length < 1<<16 {
		return le.AppendUint16(out, uint16(length)), half
	}
	return le.AppendUint32(append(out, 0, 0), uint32(length)), half
}
