package etl

import (
	"encoding/binary"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

const (
	// sizeofBuffer is that of WMI_BUFFER_HEADER, which each buffer begins with.
	sizeofBuffer = 72
	// bufferMax is the largest buffer that a session may have: 16 MB.
	bufferMax = 16 << 20
	// expansionMax is how many times longer than in the file a buffer's records may be, beyond expansionMin: real
	// ones are some 5 times longer, and in a file that is made to hold us up 10,000 times.
	expansionMax = 100
	expansionMin = 64 << 10

	flagProcessorIndex = 0x20 // ETW_BUFFER_FLAG_PROC_INDEX: the CPU's number has 16 bits, not 8
	flagCompressed     = 0x40 // ETW_BUFFER_FLAG_COMPRESSED
)

// bufferHeader is the part of WMI_BUFFER_HEADER that matters.
type bufferHeader struct {
	size  int // in the file
	used  int // with the header, of what is compressed after expansion
	cpu   uint16
	flags uint16
}

func parseBufferHeader(b []byte) bufferHeader {
	le := binary.LittleEndian
	h := bufferHeader{
		size: int(le.Uint32(b)), used: int(le.Uint32(b[48:])), cpu: le.Uint16(b[40:]), flags: le.Uint16(b[52:]),
	}
	if h.used == 0 { // as old systems and crash dumps leave it
		h.used = int(le.Uint32(b[4:]))
	}
	if h.flags&flagProcessorIndex == 0 {
		h.cpu &= 0xff
	}
	return h
}

// The types of records' headers (TRACE_HEADER_TYPE_* of ntwmi.h), in the third byte; the fourth says what they
// are: 0xc0 (TRACE_HEADER_FLAG, TRACE_HEADER_EVENT_TRACE), or 0x90 for a message of WPP.
const (
	typeSystem32   = 1
	typeSystem64   = 2
	typeCompact32  = 3
	typeCompact64  = 4
	typeFull32     = 10
	typeInstance32 = 11
	typePerfInfo32 = 16
	typePerfInfo64 = 17
	typeEvent32    = 18
	typeEvent64    = 19
	typeFull64     = 20
	typeInstance64 = 21

	flagHeader  = 0x80
	flagMessage = 0x10

	sizeofSystem   = 32
	sizeofCompact  = 24
	sizeofPerfInfo = 16
	sizeofFull     = 48
	sizeofInstance = 72
	sizeofEvent    = 80

	groupProcess = 3 // EVENT_TRACE_GROUP_PROCESS
	// eventExtended is EVENT_HEADER_FLAG_EXTENDED_INFO: items stand between header and payload.
	eventExtended = 1
)

// next reads the record that b begins with, and returns its length in the buffer; 0 if it cannot be read. False:
// it is none of an event, such as a message of WPP.
func next(b []byte, r *etw.Record) (length int, ok bool) {
	if len(b) < 8 || b[3]&flagHeader == 0 {
		return 0, false
	}
	*r = etw.Record{Pointer: 8, PID: etw.NoPID, TID: etw.NoPID}
	le := binary.LittleEndian
	length = int(le.Uint16(b))
	if b[3]&flagMessage != 0 {
		return fit(b, length, 8), false
	}
	header := 0
	switch b[2] {
	case typeSystem32, typeSystem64, typeCompact32, typeCompact64, typePerfInfo32, typePerfInfo64:
		length, header = int(le.Uint16(b[4:])), system(b, r)
	case typeFull32, typeFull64:
		header = sizeofFull
	case typeInstance32, typeInstance64:
		header = sizeofInstance
	case typeEvent32, typeEvent64:
		header = sizeofEvent
	default:
		return fit(b, length, 8), false
	}
	if header == 0 || fit(b, length, header) == 0 {
		return 0, false
	}
	r.Payload = b[header:length]
	switch header {
	case sizeofFull, sizeofInstance:
		classic(b, r)
	case sizeofEvent:
		if !manifest(b, r) {
			return fit(b, length, header), false
		}
	}
	switch b[2] {
	case typeSystem32, typeCompact32, typePerfInfo32, typeFull32, typeInstance32, typeEvent32:
		r.Pointer = 4
	}
	return fit(b, length, header), true
}

// fit is a record's length up to the next one; 0 if it does not fit into b.
func fit(b []byte, length, header int) int {
	if length < header || length > len(b) {
		return 0
	}
	return min((length+7)&^7, len(b))
}

// system reads a header of the system logger, and returns its length; 0 if it is cut off.
func system(b []byte, r *etw.Record) int {
	header, le := sizeofSystem, binary.LittleEndian
	switch b[2] {
	case typeCompact32, typeCompact64:
		header = sizeofCompact
	case typePerfInfo32, typePerfInfo64:
		header = sizeofPerfInfo
	}
	if len(b) < header {
		return 0
	}
	r.Version, r.Opcode = version(le.Uint16(b)), b[6]
	if b[7] == groupProcess {
		r.Provider = etw.SystemProcess
	}
	if header == sizeofPerfInfo {
		r.Time = int64(le.Uint64(b[8:]))
	} else {
		r.TID, r.PID, r.Time = le.Uint32(b[8:]), le.Uint32(b[12:]), int64(le.Uint64(b[16:]))
	}
	return header
}

// classic reads EVENT_TRACE_HEADER and the part of EVENT_INSTANCE_GUID_HEADER that is the same.
func classic(b []byte, r *etw.Record) {
	le := binary.LittleEndian
	r.Opcode, r.Version = b[4], version(le.Uint16(b[6:]))
	r.TID, r.PID, r.Time = le.Uint32(b[8:]), le.Uint32(b[12:]), int64(le.Uint64(b[16:]))
	copy(r.Provider[:], b[24:])
}

// version is that of an event, as far as versions go: none beyond 255 may pass for another one.
func version(v uint16) uint8 { return uint8(min(v, 255)) }

// manifest reads EVENT_HEADER, and skips the items behind it; false if these are cut off.
func manifest(b []byte, r *etw.Record) bool {
	le := binary.LittleEndian
	r.TID, r.PID, r.Time = le.Uint32(b[8:]), le.Uint32(b[12:]), int64(le.Uint64(b[16:]))
	copy(r.Provider[:], b[24:])
	r.ID, r.Version, r.Opcode = le.Uint16(b[40:]), b[42], b[45]
	for more := le.Uint16(b[4:])&eventExtended != 0; more; {
		if len(r.Payload) < 8 {
			return false
		}
		more = le.Uint16(r.Payload[4:])&1 != 0
		item := (8 + int(le.Uint16(r.Payload[6:])) + 7) &^ 7
		if item > len(r.Payload) {
			return false
		}
		r.Payload = r.Payload[item:]
	}
	return true
}
