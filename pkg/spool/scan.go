package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/cniscope/cniscope/pkg/disk"
)

// DamagedError means that a byte range holds no valid record. Later records are readable.
type DamagedError struct {
	File     string
	From, To int64
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged from byte %d to %d: at least one operation is lost", e.File, e.From, e.To)
}

type scanner struct {
	r       io.ReaderAt
	at, end int64 // offset of the next record; size of the segment
	failed  error
}

// read reads up to len(b) bytes, with one retry for a failing disk.
func (s *scanner) read(b []byte, at int64) (n int) {
	var err error
	for range 2 {
		if n, err = s.r.ReadAt(b, at); err == nil || errors.Is(err, io.EOF) {
			return n
		}
	}
	s.failed = err
	return n
}

// header returns the next record's header. It fails with io.EOF, or with a *DamagedError, after which the caller may
// continue.
func (s *scanner) header() (header, error) {
	if s.at >= s.end {
		return header{}, io.EOF
	}
	if h, ok := s.headerAt(s.at); ok {
		s.at = h.next()
		return h, nil
	}
	from := s.at
	s.at = s.seek(from + 1)
	return header{}, &DamagedError{From: from, To: s.at}
}

func (s *scanner) data(h header) ([]byte, error) {
	data := make([]byte, h.length)
	n := s.read(data, h.at+headerSize)
	if n < len(data) || crc32.Checksum(data, castagnoli) != h.sum {
		return nil, &DamagedError{From: h.at, To: h.next()}
	}
	return data, nil
}

func (s *scanner) headerAt(at int64) (header, bool) {
	if s.end-at < headerSize {
		return header{}, false
	}
	b := make([]byte, headerSize)
	if n := s.read(b, at); n < headerSize {
		return header{}, false
	}
	h, ok := decode(b, at)
	return h, ok && h.next() <= s.end
}

func (s *scanner) seek(from int64) int64 {
	chunk := make([]byte, 64<<10)
	for from < s.end {
		n := s.read(chunk[:min(int64(len(chunk)), s.end-from)], from)
		for at := 0; ; at++ {
			i := bytes.Index(chunk[at:n], marker[:])
			if i < 0 {
				break
			}
			at += i
			if _, ok := s.headerAt(from + int64(at)); ok {
				return from + int64(at)
			}
		}
		if n < len(marker) {
			break
		}
		from += int64(n - len(marker) + 1) // a marker may span two chunks
	}
	return s.end
}

func (s *scanner) next() (header, []byte, error) {
	h, err := s.header()
	if err != nil {
		return h, nil, err
	}
	data, err := s.data(h)
	return h, data, err
}

func ends(r io.ReaderAt, size int64) (whole int64, err error) {
	s := scanner{r: r, end: size}
	for {
		_, _, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return whole, s.failed
		case err == nil:
			whole = s.at
		}
	}
}

// A record is a header of 32 bytes and the operation's data. Numbers are little endian.
//
//	 0  marker    4 bytes
//	 4  length    of the data
//	 8  start     nanoseconds since 1970
//	16  end       nanoseconds since 1970
//	24  checksum  of the data
//	28  checksum  of the header up to here
//
// The header's checksum makes the length reliable even if the data is damaged; else reading continues at the next
// marker.
const headerSize = 32

// marker ends with the format version. UTF-8 contains neither 0xff nor 0xfe, so text cannot imitate it.
var marker = [4]byte{0xff, 0xfe, 'c', 1}

// maxData bounds a record in bytes; larger operations are not exported.
const maxData = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	at         int64
	length     int64
	start, end int64
	sum        uint32
}

func (h header) next() int64 { return h.at + headerSize + h.length }

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

// Read yields operations that ended at since or later, exported or not, in order. Another process may append. It
// continues after a *DamagedError or an *UnreadableError; any other error is the last.
func Read(dir string, since time.Time) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		root, err := disk.OpenFolder(dir)
		if err != nil {
			yield(Operation{}, fmt.Errorf("spool %s: %w", dir, err))
			return
		}
		defer root.Close()
		all, strange, err := list(root)
		if err != nil {
			yield(Operation{}, fmt.Errorf("spool %s: %w", dir, err))
			return
		}
		for _, err := range strange {
			if !yield(Operation{}, err) {
				return
			}
		}
		for i, g := range all {
			if !g.modified.Before(since) && !read(root, g, i == len(all)-1, since, yield) {
				return
			}
		}
	}
}

// read yields a segment's operations. The newest segment may end in an incomplete record.
func read(root disk.Folder, g segment, newest bool, since time.Time, yield func(Operation, error) bool) (more bool) {
	f, err := disk.OpenRegular(root, g.name())
	if errors.Is(err, fs.ErrNotExist) {
		return true // removed after the listing
	}
	if err != nil {
		return yield(Operation{}, &UnreadableError{File: g.name(), Why: err})
	}
	defer f.Close()
	scan := scanner{r: f, end: g.end()}
	var damaged *DamagedError // reported if a valid record follows
	for {
		op, wanted, err := scan.since(since)
		switch here, is := errors.AsType[*DamagedError](err); {
		case is:
			if damaged == nil {
				damaged = &DamagedError{File: g.name(), From: here.From}
			}
			damaged.To = here.To
			continue
		case err != nil && scan.end < g.size:
			why := fmt.Errorf("it has %d bytes, and a segment has up to %d", g.size, maxSegment)
			return yield(Operation{}, &UnreadableError{File: g.name(), From: scan.end, Why: why})
		case err != nil: // io.EOF
			return damaged == nil || newest && scan.unfinished(damaged.From) || yield(Operation{}, damaged)
		}
		if damaged != nil && !yield(Operation{}, damaged) {
			return false
		}
		damaged = nil
		if wanted && !yield(op, nil) {
			return false
		}
	}
}

// unfinished reports whether one record is being written, or was cut by a power failure, which may leave zeros.
func (s *scanner) unfinished(at int64) bool {
	b := make([]byte, s.end-at)
	b = b[:s.read(b, at)]
	written := bytes.TrimRight(b, "\x00")
	if len(b) >= headerSize {
		if h, ok := decode(b, at); ok {
			return h.next() > s.end || at+int64(len(written)) < h.next()
		}
	}
	return len(written) < headerSize && bytes.HasPrefix(written, marker[:min(len(written), len(marker))])
}

func (s *scanner) since(t time.Time) (op Operation, wanted bool, err error) {
	h, err := s.header()
	if err != nil || time.Unix(0, h.end).Before(t) {
		return op, false, err
	}
	data, err := s.data(h)
	return h.operation(data), true, err
}
