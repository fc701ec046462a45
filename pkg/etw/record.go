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

// The providers of processes' starts and ends.
var (
	// KernelProcess is Microsoft-Windows-Kernel-Process, {22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716}.
	KernelProcess = GUID{0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42, 0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16}
	// SystemProcess are the process events of the system logger, {3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c}.
	SystemProcess = GUID{0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c}
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
