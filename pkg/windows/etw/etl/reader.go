// Package etl reads .etl files, recorded traces of Windows. It is portable, accepts any bytes, and reads as much as
// possible of a damaged file. Records are sorted by time only within one CPU.
package etl

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Reader reads records of one file.
type Reader struct {
	from   io.Reader
	header Header
	stats  Stats
	// raw is a buffer as stored, expanded its decompressed form; they grow with data, not with a header's claim. rest is
	// unread.
	raw            bytes.Buffer
	expanded, rest []byte
	broken         bool // the current buffer is counted
}

// Stats counts a Reader's work.
type Stats struct {
	Bytes            int64
	Buffers, Records uint64
	// Broken counts partly unreadable buffers.
	Broken uint64
}

// FormatError means that the file is no .etl file.
type FormatError struct{ Why string }

func (e *FormatError) Error() string { return "this is no trace (.etl) that can be read: " + e.Why }

func formatError(why string) error { return &FormatError{why} }

// TruncatedError means that a file ends or becomes unreadable within a buffer.
type TruncatedError struct {
	Read Stats
	Why  string
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the trace is cut off or broken at byte %d: %s; %d records of %d buffers before that were read",
		e.Read.Bytes, e.Why, e.Read.Records, e.Read.Buffers)
}

// NewReader reads the header; the error may be a FormatError.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{from: from}
	b, h, err := r.buffer()
	if cut, is := errors.AsType[*TruncatedError](err); is {
		return nil, formatError(cut.Why)
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, formatError("it is empty")
		}
		return nil, err
	}
	var first etw.Record
	if h.flags&flagCompressed != 0 {
		return nil, formatError("its first buffer is compressed")
	}
	if _, ok := next(b, &first); !ok || !beginsTrace(b) {
		return nil, formatError("it does not begin with a header")
	}
	if r.header, err = parseHeader(first.Payload, uint64(first.Time)); err != nil {
		return nil, err
	}
	if r.rest, err = r.records(b, h); err != nil {
		return nil, formatError("its first buffer is cut off")
	}
	return r, nil
}

// Header returns the header.
func (r *Reader) Header() Header { return r.header }

// Stats returns the counters.
func (r *Reader) Stats() Stats { return r.stats }

// Next reads a record, valid until the next call. The error is io.EOF, a TruncatedError, or a read error.
func (r *Reader) Next(to *etw.Record) error {
	for {
		for len(r.rest) >= 8 {
			length, ok := next(r.rest, to)
			if length == 0 {
				r.breaks()
				r.rest = nil
				break
			}
			r.rest = r.rest[length:]
			if ok {
				r.stats.Records++
				to.Time = r.header.nanoseconds(uint64(to.Time))
				return nil
			}
		}
		b, h, err := r.buffer()
		if err != nil {
			return err
		}
		r.broken = false
		if r.rest, err = r.records(b, h); err != nil {
			r.breaks()
		}
	}
}

func (r *Reader) breaks() {
	if !r.broken {
		r.broken = true
		r.stats.Broken++
	}
}

func (r *Reader) buffer() ([]byte, bufferHeader, error) {
	var head [sizeofBuffer]byte
	n, err := io.ReadFull(r.from, head[:])
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = r.cut(fmt.Sprintf("%d bytes are too few for a buffer", n))
		}
		return nil, bufferHeader{}, err
	}
	h := parseBufferHeader(head[:])
	if h.size < sizeofBuffer || h.size > bufferMax {
		why := fmt.Sprintf("no buffer has %d bytes", h.size)
		if h.size == 0 {
			why = "from there on it is empty, as that of a session that was not stopped"
		}
		return nil, h, r.cut(why)
	}
	r.raw.Reset()
	if n, err := io.CopyN(&r.raw, r.from, int64(h.size-sizeofBuffer)); err != nil {
		if errors.Is(err, io.EOF) {
			err = r.cut(fmt.Sprintf("of a buffer of %d bytes there are %d", h.size, sizeofBuffer+n))
		}
		return nil, h, err
	}
	r.stats.Bytes += int64(h.size)
	r.stats.Buffers++
	return r.raw.Bytes(), h, nil
}

func (r *Reader) cut(why string) error { return &TruncatedError{Read: r.stats, Why: why} }

func (r *Reader) records(b []byte, h bufferHeader) ([]byte, error) {
	used := h.used - sizeofBuffer
	if h.flags&flagCompressed != 0 {
		all, err := expand(r.expanded, b, min(bufferMax, expansionMin+expansionMax*len(b)))
		if err != nil {
			return nil, err
		}
		r.expanded, b = all, all
	}
	if used < 0 || used > len(b) {
		return b, errShort
	}
	return b[:used], nil
}

var errShort = errors.New("the buffer is too short")
