// Package etwtest generates event payloads and .etl files for tests.
package etwtest

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Fields are the parts of a payload: uint16, uint32, uint64, Pointer, SID, User, a string (UTF-16 with NUL), ANSI,
// raw []byte.
type Fields []any

// Pointer has the payload's pointer size.
type Pointer uint64

// ANSI is a text with NUL.
type ANSI string

// SID is S-1-5-18.
type SID struct{}

// User is a TOKEN_USER of S-1-5-18, or, if false, four zero bytes.
type User bool

var systemSID = []byte{1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0}

// NoUser is the exit code of generated processes without a user.
const NoUser = 0xdead

// terminal is the terminal services session.
const terminal = uint32(1)

// Payload encodes the fields.
func Payload(pointer int, fields Fields) (b []byte) {
	le := binary.LittleEndian
	address := func(v uint64) {
		if pointer == 4 {
			b = le.AppendUint32(b, uint32(v))
		} else {
			b = le.AppendUint64(b, v)
		}
	}
	for _, field := range fields {
		switch f := field.(type) {
		case uint16:
			b = le.AppendUint16(b, f)
		case uint32:
			b = le.AppendUint32(b, f)
		case uint64:
			b = le.AppendUint64(b, f)
		case Pointer:
			address(uint64(f))
		case ANSI:
			b = append(append(b, f...), 0)
		case SID:
			b = append(b, systemSID...)
		case User:
			if !f {
				b = le.AppendUint32(b, 0)
				continue
			}
			address(0xffffa00000000001)
			address(0)
			b = append(b, systemSID...)
		case string:
			for _, unit := range utf16.Encode([]rune(f + "\x00")) {
				b = le.AppendUint16(b, unit)
			}
		case []byte:
			b = append(b, f...)
		default:
			panic("no such field")
		}
	}
	return b
}

// Record returns Windows' record of p in its version, with 8-byte pointers.
func Record(p etw.Process) etw.Record {
	r := etw.Record{Provider: p.Provider, Version: p.Version, Time: p.Time, Pointer: 8}
	if p.Provider == etw.KernelProcess {
		r.ID = map[etw.What]uint16{etw.Start: 1, etw.End: 2, etw.Present: 15}[p.What]
		r.Payload = Payload(8, kernel(p))
		return r
	}
	r.Opcode = map[etw.What]uint8{etw.Start: 1, etw.End: 2, etw.Present: 3, etw.Remains: 4, etw.Defunct: 39}[p.What]
	r.Payload = Payload(8, System(p))
	return r
}

// kernel returns the fields of Microsoft-Windows-Kernel-Process.
func kernel(p etw.Process) Fields {
	numbered := p.Version >= 3 || p.What == etw.Present && p.Version >= 1
	switch {
	case p.What == etw.End:
		f := Fields{p.PID}
		if p.Version >= 2 {
			f = append(f, uint64(77))
		}
		f = append(f, uint64(p.Created), uint64(p.Created), p.Code, uint32(1), uint32(100), uint64(4096), uint64(8192))
		if p.Version >= 1 {
			f = append(f, uint64(99), uint32(1), uint32(2), uint32(3), uint32(4), uint32(5))
		}
		return append(f, ANSI(p.Image[:min(len(p.Image), 14)]))
	case numbered:
		return Fields{
			p.PID, uint64(78), uint64(p.Created), p.Parent, uint64(77), terminal, uint32(0), uint32(1), uint32(1),
			SID{},
			p.Image, uint32(0xc0ffee), uint32(0), "", "", uint32(0),
		}
	}
	f := Fields{p.PID, uint64(p.Created), p.Parent, terminal}
	if p.Version >= 1 || p.What == etw.Present {
		f = append(f, uint32(0))
	}
	f = append(f, p.Image)
	if p.Version >= 2 || p.What == etw.Present {
		f = append(f, uint32(0xc0ffee), uint32(0), "", "")
	}
	return f
}

// System returns the fields of the system logger's process event (Process_V0_TypeGroup1 to V5).
func System(p etw.Process) (f Fields) {
	if p.Version == 0 {
		f = Fields{Pointer(p.PID), Pointer(p.Parent)}
	} else {
		f = Fields{Pointer(0xfffffa8300cfb380), p.PID, p.Parent, terminal, p.Code}
	}
	if p.Version >= 3 {
		f = append(f, Pointer(0x187000))
	}
	if p.Version >= 4 {
		f = append(f, uint32(0))
	}
	f = append(f, User(p.Code != NoUser), ANSI(p.Image))
	if p.Version >= 2 {
		f = append(f, p.CommandLine)
	}
	if p.Version >= 4 {
		f = append(f, "", "")
	}
	if p.Version >= 5 {
		f = append(f, uint64(0))
	}
	return f
}
