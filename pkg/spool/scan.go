package spool

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// DamagedError says that a stretch of a segment holds no whole record. What comes behind
// it can be read.
type DamagedError struct {
	File     string
	From, To int64
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged from byte %d to %d: at least one operation is lost", e.File, e.From, e.To)
}

// scanner reads the records of a segment. What cannot be read is damaged, whatever the
// reason is.
type scanner struct {
	r io.ReaderAt
	// at is where the next record begins, and end where the segment does.
	at, end int64
}

// header moves behind the next record and returns its header; the data need not be
// whole. The error is io.EOF at the end, or a *DamagedError: call it again then.
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

// next moves behind the next record and returns it as a whole.
func (s *scanner) next() (header, []byte, error) {
	h, err := s.header()
	if err != nil {
		return h, nil, err
	}
	data, err := s.data(h)
	return h, data, err
}

// data returns the data of a record.
func (s *scanner) data(h header) ([]byte, error) {
	data := make([]byte, h.length)
	n, _ := s.r.ReadAt(data, h.at+headerSize)
	if n < len(data) || crc32.Checksum(data, castagnoli) != h.sum {
		return nil, &DamagedError{From: h.at, To: h.next()}
	}
	return data, nil
}

// headerAt returns the header at an offset if there is one whose record ends in time.
func (s *scanner) headerAt(at int64) (header, bool) {
	if s.end-at < headerSize {
		return header{}, false
	}
	b := make([]byte, headerSize)
	if n, _ := s.r.ReadAt(b, at); n < headerSize {
		return header{}, false
	}
	h, ok := decode(b, at)
	return h, ok && h.next() <= s.end
}

// seek returns where the next record begins, from an offset on; the end if nowhere.
func (s *scanner) seek(from int64) int64 {
	chunk := make([]byte, 64<<10)
	for from < s.end {
		n, _ := s.r.ReadAt(chunk[:min(int64(len(chunk)), s.end-from)], from)
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
		from += int64(n - len(marker) + 1) // a marker may lie across two chunks
	}
	return s.end
}

// ends returns where the last whole record of a segment ends.
func ends(r io.ReaderAt, size int64) (whole int64) {
	s := scanner{r: r, end: size}
	for {
		_, _, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return whole
		case err == nil:
			whole = s.at
		}
	}
}
