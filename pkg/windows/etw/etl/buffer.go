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

	flagCompressed = 0x40 // ETW_BUFFER_FLAG_COMPRESSED
)

type bufferHeader struct {
	size  int // size in the file
	used  int // used bytes after expansion, with the header
	flags uint16
}

func parseBufferHeader(b []byte) bufferHeader {
	le := binary.LittleEndian
	h := bufferHeader{size: int(le.Uint32(b)), used: int(le.Uint32(b[48:])), flags: le.Uint16(b[52:])}
	if h.used == 0 { // in old systems and crash dumps
		h.used = int(le.Uint32(b[4:]))
	}
	return h
}

const (
	flagHeader  = 0x80
	flagMessage = 0x10

	groupProcess = 3 // EVENT_TRACE_GROUP_PROCESS
	// EVENT_HEADER_FLAG_EXTENDED_INFO: items precede the payload.
	eventExtended = 1
	itemSchema    = 11 // EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL
)

type kind struct {
	header, lengthAt, pointer int
	parse                     func(b []byte, r *etw.Record) bool
}

// kinds are indexed by a header's third byte (TRACE_HEADER_TYPE_* of ntwmi.h). The fourth is 0xc0 (TRACE_HEADER_FLAG,
// TRACE_HEADER_EVENT_TRACE), or 0x90 for a WPP message.
var kinds = [...]kind{
	1:  {32, 4, 4, system}, // SYSTEM32
	2:  {32, 4, 8, system},
	3:  {24, 4, 4, system}, // COMPACT32
	4:  {24, 4, 8, system},
	10: {48, 0, 4, classic},  // FULL_HEADER32
	11: {72, 0, 4, classic},  // INSTANCE32
	16: {16, 4, 4, perfInfo}, // PERFINFO32
	17: {16, 4, 8, perfInfo},
	18: {80, 0, 4, manifest}, // EVENT_HEADER32
	19: {80, 0, 8, manifest},
	20: {48, 0, 8, classic},
	21: {72, 0, 8, classic},
}

// next returns the first record's length, 0 if unreadable. ok is false for others, such as WPP messages.
func next(b []byte, r *etw.Record) (length int, ok bool) {
	if len(b) < 8 || b[3]&flagHeader == 0 {
		return 0, false
	}
	k := kind{header: 8}
	if b[3]&flagMessage == 0 && int(b[2]) < len(kinds) && kinds[b[2]].parse != nil {
		k = kinds[b[2]]
	}
	length = int(binary.LittleEndian.Uint16(b[k.lengthAt:]))
	whole := fit(b, length, k.header)
	if whole == 0 || k.parse == nil {
		return whole, false
	}
	*r = etw.Record{Pointer: k.pointer, Payload: b[k.header:length]}
	return whole, k.parse(b, r)
}

// fit returns an aligned length; 0 beyond b.
func fit(b []byte, length, header int) int {
	if length < header || length > len(b) {
		return 0
	}
	return min((length+7)&^7, len(b))
}

func perfInfo(b []byte, r *etw.Record) bool {
	le := binary.LittleEndian
	r.Version, r.Opcode, r.Time = version(le.Uint16(b)), b[6], int64(le.Uint64(b[8:]))
	if b[7] == groupProcess {
		r.Provider = etw.SystemProcess
	}
	return true
}

func system(b []byte, r *etw.Record) bool {
	perfInfo(b, r)
	r.Time = int64(binary.LittleEndian.Uint64(b[16:]))
	return true
}

// classic parses EVENT_TRACE_HEADER, or the equal part of EVENT_INSTANCE_GUID_HEADER.
func classic(b []byte, r *etw.Record) bool {
	le := binary.LittleEndian
	r.Opcode, r.Version, r.Time = b[4], version(le.Uint16(b[6:])), int64(le.Uint64(b[16:]))
	copy(r.Provider[:], b[24:])
	return true
}

// A version above 255 must not match another.
func version(v uint16) uint8 { return uint8(min(v, 255)) }

// manifest skips EVENT_HEADER's items; false if they are incomplete.
func manifest(b []byte, r *etw.Record) bool {
	le := binary.LittleEndian
	copy(r.Provider[:], b[24:])
	r.Time, r.ID, r.Version, r.Opcode = int64(le.Uint64(b[16:])), le.Uint16(b[40:]), b[42], b[45]
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
