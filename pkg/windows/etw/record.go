package etw

import (
	"encoding/binary"
	"fmt"
)

// GUID names a provider, in the byte order of Windows' memory.
type GUID [16]byte

// String is as Windows writes it: "{22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716}".
func (g GUID) String() string {
	le := binary.LittleEndian
	return fmt.Sprintf("{%08x-%04x-%04x-%x-%x}", le.Uint32(g[0:]), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:10], g[10:16])
}

// guid is a GUID as Windows writes it, its last two groups as numbers.
func guid(a uint32, b, c, d uint16, e uint64) (g GUID) {
	le, be := binary.LittleEndian, binary.BigEndian
	be.PutUint64(g[8:], e)
	be.PutUint16(g[8:], d)
	le.PutUint32(g[0:], a)
	le.PutUint16(g[4:], b)
	le.PutUint16(g[6:], c)
	return g
}

// The providers of processes' starts and ends.
var (
	// KernelProcess is Microsoft-Windows-Kernel-Process.
	KernelProcess = guid(0x22fb2cd6, 0x0e7b, 0x422b, 0xa0c7, 0x2fad1fd0e716)
	// SystemProcess are the process events of the system logger.
	SystemProcess = guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c)
)

// Record is one event as Windows records it, undecoded.
type Record struct {
	// Provider sent it; zero for events of the system logger that are not about processes.
	Provider GUID
	// ID is the event's number in its provider's manifest; Opcode that of a classic (MOF) event, which has no ID.
	ID      uint16
	Version uint8
	Opcode  uint8
	// Time is in ns of the clock of the trace: since boot, mostly.
	Time int64
	// PID and TID are the process and the thread that sent it; NoPID where that is not recorded.
	PID, TID uint32
	CPU      uint16
	// Pointer is how many bytes a pointer in Payload has: 4 or 8.
	Pointer int
	// Payload is what the provider sent. It is valid until the next record.
	Payload []byte
}

// NoPID is the process of a record that does not say which.
const NoPID = 1<<32 - 1
