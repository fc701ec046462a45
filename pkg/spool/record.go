package spool

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// A record is a header of 32 bytes and the operation's data. All numbers are little
// endian.
//
//	 0  marker    4 bytes
//	 4  length    of the data
//	 8  start     nanoseconds since 1970
//	16  end       nanoseconds since 1970
//	24  checksum  of the data
//	28  checksum  of the header up to here
//
// The header has a checksum of its own, so that the length of a record whose data is
// damaged can be believed. Where the header is damaged, the next marker is looked for.
const headerSize = 32

// marker begins a record, and ends in the version of the format. 0xff and 0xfe are in no
// UTF-8 text, so that no text somebody chose can look like a record.
var marker = [4]byte{0xff, 0xfe, 'c', 1}

// maxData is the largest data of a record, 4 MiB: no larger operation is exported.
const maxData = 4 << 20

// castagnoli is CRC-32C, which processors compute themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the header of a record, and where it lies.
type header struct {
	at         int64
	length     int64
	start, end int64
	sum        uint32
}

func (h header) next() int64 { return h.at + headerSize + h.length }

// encode appends a record to b.
func encode(b []byte, op Operation) []byte {
	begin := len(b)
	b = append(b, marker[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(op.Data)))
	b = binary.LittleEndian.AppendUint64(b, uint64(op.Start.UnixNano()))
	b = binary.LittleEndian.AppendUint64(b, uint64(op.End.UnixNano()))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(op.Data, castagnoli))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[begin:], castagnoli))
	return append(b, op.Data...)
}

// decode reads the header in b, of headerSize bytes, that lies at an offset.
func decode(b []byte, at int64) (header, bool) {
	h := header{
		at:     at,
		length: int64(binary.LittleEndian.Uint32(b[4:])),
		start:  int64(binary.LittleEndian.Uint64(b[8:])),
		end:    int64(binary.LittleEndian.Uint64(b[16:])),
		sum:    binary.LittleEndian.Uint32(b[24:]),
	}
	whole := [4]byte(b) == marker && h.length <= maxData &&
		binary.LittleEndian.Uint32(b[28:]) == crc32.Checksum(b[:28], castagnoli)
	return h, whole
}

func (h header) operation(data []byte) Operation {
	return Operation{Start: time.Unix(0, h.start), End: time.Unix(0, h.end), Data: data}
}
