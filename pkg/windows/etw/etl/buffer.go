package etl

import (
	"encoding/binary"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

const (
	// Size of WMI_BUFFER_HEADER.
	sizeofBuffer = 72
	// Largest buffer of a session: 16 MB.
	bufferMax = 16 << 20
	// expansionMax bounds a buffer's expansion beyond expansionMin: real ones expand 5 times, hostile ones 10,000 times.
	expansionMax = 100
	expansionMin = 64 << 10

	flagProcessorIndex = 0x20 // ETW_BUFFER_FLAG_PROC_INDEX: CPU of 16 bits instead of 8
	flagCompressed     = 0x40 // ETW_BUFFER_FLAG_COMPRESSED
)

type bufferHeader struct {
	size  int // size in the file
	used  int // used bytes after expansion, with the header
	cpu   uint16
	flags uint16
}

func parseBufferHeader(b []byte) bufferHeader {
	le := binary.LittleEndian
	h := bufferHeader{
		size: int(le.Uint32(b)), used: int(le.Uint32(b[48:])), cpu: le.Uint16(b[40:]), flags: le.Uint16(b[52:]),
	}
	if h.used == 0 { // in old systems and crash dumps
		h.used = int(le.Uint32(b[4:]))
	}
	if h.flags&flagProcessorIndex == 0 {
		h.cpu &= 0xff
	}
	return h
}

// Values of record headers' third byte (TRACE_HEADER_TYPE_* of ntwmi.h). The fourth is 0xc0 (TRACE_HEADER_FLAG,
// TRACE_HEADER_EVENT_TRACE), or 0x90 for a WPP message.
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
	// EVENT_HEADER_FLAG_EXTENDED_INFO: items precede the payload.
	eventExtended = 1
	itemSchema    = 11 // EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL
)

// next returns the first record's length, 0 if unreadable. ok is false for others, such as WPP messages.
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

// fit returns an aligned length; 0 beyond b.
func fit(b []byte, length, header int) int {
	if length < header || length > len(b) {
		return 0
	}
	return min((length+7)&^7, len(b))
}

// system returns a system logger header's length; 0 if incomplete.
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

// classic parses EVENT_TRACE_HEADER, or the equal part of EVENT_INSTANCE_GUID_HEADER.
func classic(b []byte, r *etw.Record) {
	le := binary.LittleEndian
	r.Opcode, r.Version = b[4], version(le.Uint16(b[6:]))
	r.TID, r.PID, r.Time = le.Uint32(b[8:]), le.Uint32(b[12:]), int64(le.Uint64(b[16:]))
	copy(r.Provider[:], b[24:])
}

// A version above 255 must not match another.
func version(v uint16) uint8 { return uint8(min(v, 255)) }

// manifest skips EVENT_HEADER's items; false if they are incomplete.
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
		if le.Uint16(r.Payload[2:]) == itemSchema {
			r.Schema = r.Payload[8 : 8+int(le.Uint16(r.Payload[6:]))]
		}
		r.Payload = r.Payload[item:]
	}
	return true
}
