package etw

import (
	"encoding/binary"
	"fmt"
)

// GUID identifies a provider, in Windows' byte order.
type GUID [16]byte

// String returns Windows' notation: "{22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716}".
func (g GUID) String() string {
	le := binary.LittleEndian
	return fmt.Sprintf("{%08x-%04x-%04x-%x-%x}", le.Uint32(g[0:]), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:10], g[10:16])
}

// guid converts Windows' notation, the last two groups as numbers.
func guid(a uint32, b, c, d uint16, e uint64) (g GUID) {
	le, be := binary.LittleEndian, binary.BigEndian
	be.PutUint64(g[8:], e)
	be.PutUint16(g[8:], d)
	le.PutUint32(g[0:], a)
	le.PutUint16(g[4:], b)
	le.PutUint16(g[6:], c)
	return g
}

var (
	// KernelProcess is Microsoft-Windows-Kernel-Process.
	KernelProcess = guid(0x22fb2cd6, 0x0e7b, 0x422b, 0xa0c7, 0x2fad1fd0e716)
	// SystemProcess is the system logger's process events.
	SystemProcess = guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c)
)

// Record is one undecoded event.
type Record struct {
	// Provider is zero for other system logger events.
	Provider GUID
	// ID is the number in the provider's manifest; classic (MOF) events have an Opcode.
	ID      uint16
	Version uint8
	Opcode  uint8
	// Time is in ns of the trace's clock, usually since boot.
	Time int64
	// Pointer is the pointer size in Payload: 4 or 8.
	Pointer int
	// Payload is valid until the next record, like Schema, a TraceLogging event's fields.
	Payload, Schema []byte
}
