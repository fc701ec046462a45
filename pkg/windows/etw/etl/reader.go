// Package etl reads .etl files, in which Windows keeps recorded traces: a header, and buffers of records. It runs
// everywhere, and takes any bytes: of a file that is cut off or broken it reads what it can, and says how much
// that was. Records are in the order of the file: by time only within one CPU.
package etl

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Reader reads records. Make it with NewReader.
type Reader struct {
	from   io.Reader
	header Header
	stats  Stats
	// raw is a buffer as it stands in the file, expanded one that was compressed: they grow with what is there, not
	// with what a header says. rest are the records that are not read yet.
	raw            bytes.Buffer
	expanded, rest []byte
	cpu            uint16
	broken         bool // this buffer is counted as broken
}

// Stats is what a Reader has read.
type Stats struct {
	Bytes            int64
	Buffers, Records uint64
	// Skipped are what is no record of an event: messages of WPP.
	Skipped uint64
	// Broken are buffers of which not everything could be read.
	Broken uint64
}

// FormatError says why a file is no .etl file that can be read.
type FormatError struct{ Why string }

func (e *FormatError) Error() string { return "this is no trace (.etl) that can be read: " + e.Why }

func formatError(why string) error { return &FormatError{why} }

// TruncatedError says that a file ends, or cannot be read on, in the midst of a buffer. What was read before is whole.
type TruncatedError struct {
	// Read is what was read until then, Why what is wrong with the rest.
	Read Stats
	Why  string
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the trace is cut off or broken at byte %d: %s; %d records of %d buffers before that were read",
		e.Read.Bytes, e.Why, e.Read.Records, e.Read.Buffers)
}

// NewReader reads the header of a file. The error is a FormatError if it is none, else that of reading.
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
	if _, ok := next(b, &first); !ok || b[7] != 0 || b[6] != 0 || (b[2] != typeSystem32 && b[2] != typeSystem64) {
		return nil, formatError("it does not begin with a header")
	}
	if r.header, err = parseHeader(first.Payload, uint64(first.Time)); err != nil {
		return nil, err
	}
	if r.rest, err = r.records(b, h); err != nil {
		return nil, formatError("its first buffer is cut off")
	}
	r.cpu = h.cpu
	return r, nil
}

// Header returns what the file says of itself.
func (r *Reader) Header() Header { return r.header }

// Stats returns what was read so far.
func (r *Reader) Stats() Stats { return r.stats }

// Next reads the next record into to, whose payload is valid until the next call. The error is io.EOF at the end, a
// TruncatedError where the file ends too early or is broken, or that of reading.
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
			if !ok {
				r.stats.Skipped++
				continue
			}
			r.stats.Records++
			to.CPU, to.Time = r.cpu, r.header.nanoseconds(uint64(to.Time))
			return nil
		}
		b, h, err := r.buffer()
		if err != nil {
			return err
		}
		r.broken, r.cpu = false, h.cpu
		if r.rest, err = r.records(b, h); err != nil {
			r.breaks()
		}
	}
}

// breaks counts a buffer as broken, once.
func (r *Reader) breaks() {
	if !r.broken {
		r.broken = true
		r.stats.Broken++
	}
}

// buffer reads the next buffer, and returns what is behind its header, as it stands in the file.
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

// records are those of a buffer, expanded if need be; with an error, what there is of them.
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

// errShort says that a buffer holds less than its header says.
var errShort = errors.New("the buffer is too short")
