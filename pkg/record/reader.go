package record

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/event"
)

// Reader reads a recording, gzipped or not, holding one line in memory.
type Reader struct {
	name      string
	lines     *bufio.Scanner
	line      int
	header    Header
	skipped   uint64
	bytes     int64 // bytes read so far, unpacked
	events    int
	maxBytes  int64
	maxEvents int
	err       error
	file      disk.File
}

// Format turns another kind of file into a recording. It returns nil for all other files, and reads nothing of them.
type Format func(in *bufio.Reader) (io.Reader, error)

// NewReader reads the header. It fails with ErrNotRecording, ErrNewer, or a Format's error.
func NewReader(in io.Reader, others ...Format) (*Reader, error) { return newReader(in, "", others) }

func newReader(in io.Reader, name string, others []Format) (*Reader, error) {
	r := &Reader{name: name}
	buffered := bufio.NewReader(in)
	for _, other := range others {
		made, err := other(buffered)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(name, "standard input"), err)
		}
		if made != nil {
			buffered = bufio.NewReader(made)
		}
	}
	plain, err := decompress(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", place(name, 1), ErrNotRecording, err)
	}
	r.lines = bufio.NewScanner(plain)
	r.lines.Buffer(nil, maxLine)
	r.lines.Split(keepEnds)
	if err := r.readHeader(); err != nil {
		return nil, fmt.Errorf("%s: %w", place(name, 1), err)
	}
	return r, nil
}

// decompress recognizes gzip by the first bytes (RFC 1952), whatever the file's name.
func decompress(buffered *bufio.Reader) (io.Reader, error) {
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(magic) != "\x1f\x8b" {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

func keepEnds(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func (r *Reader) readHeader() error {
	const remedy = "make a recording with `cniscope record FILE`"
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return fmt.Errorf("%w: %w; %s", ErrNotRecording, err, remedy)
		}
		return fmt.Errorf("%w: it is empty; %s", ErrNotRecording, remedy)
	}
	r.line++
	var is struct {
		Format  string `json:"cniscope"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(r.lines.Bytes(), &is); err != nil || is.Format != format || is.Version < 1 {
		return fmt.Errorf("%w: it does not begin with a recording's header; %s", ErrNotRecording, remedy)
	}
	if is.Version > Version {
		return fmt.Errorf("%w: it has version %d and this cniscope reads up to %d: read it with a newer one",
			ErrNewer, is.Version, Version)
	}
	if err := json.Unmarshal(r.lines.Bytes(), &r.header); err != nil {
		return fmt.Errorf("%w: its header: %w", ErrNotRecording, err)
	}
	options, err := cleanObject(r.header.Options)
	if err != nil {
		return fmt.Errorf("%w: its header: %w", ErrNotRecording, err)
	}
	r.header.Options = nil
	clean(&r.header)
	r.header.Options = options
	return nil
}

// Bound limits Next in unpacked bytes and events; 0 is no limit. Set it for strangers' files.
func (r *Reader) Bound(bytes int64, events int) { r.maxBytes, r.maxEvents = bytes, events }

// Place returns file and line, for messages.
func (r *Reader) Place() string { return place(r.name, r.line) }

// Header returns the recording's cleaned first line.
func (r *Reader) Header() Header { return r.header }

// Skipped counts events of unknown kinds.
func (r *Reader) Skipped() uint64 { return r.skipped }

// Next returns the next event, or io.EOF. Errors are final: *TruncatedError, *BoundError, ErrBroken or ErrTooLong.
func (r *Reader) Next() (event.Event, error) {
	for r.err == nil {
		var e event.Event
		if e, r.err = r.next(); r.err == nil && e.Body != nil {
			return e, nil
		}
	}
	return event.Event{}, r.err
}

func (r *Reader) next() (event.Event, error) {
	if !r.lines.Scan() {
		return event.Event{}, r.ending()
	}
	r.line++
	line := r.lines.Bytes()
	if err := r.count(line); err != nil {
		return event.Event{}, err
	}
	whole := line[len(line)-1] == '\n'
	e, err := decode(line, r.header.Version)
	switch {
	case err != nil && !whole && !json.Valid(line):
		if r.lines.Err() == nil {
			return e, &TruncatedError{File: r.name, Line: r.line}
		}
		r.line--
		return e, r.ending()
	case err != nil:
		return e, fmt.Errorf("%s: %w: %w: the recording was altered; remove the line or record again",
			place(r.name, r.line), ErrBroken, err)
	case e.Body == nil:
		r.skipped++
	}
	return e, nil
}

func (r *Reader) count(line []byte) error {
	r.bytes += int64(len(line))
	r.events++
	switch {
	case r.maxBytes > 0 && r.bytes > r.maxBytes:
		return &BoundError{File: r.name, Line: r.line, More: fmt.Sprintf("%d MiB in it, unpacked", r.maxBytes>>20)}
	case r.maxEvents > 0 && r.events > r.maxEvents:
		return &BoundError{File: r.name, Line: r.line, More: fmt.Sprintf("%d events", r.maxEvents)}
	}
	return nil
}

func (r *Reader) ending() error {
	err := r.lines.Err()
	switch {
	case err == nil:
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF): // truncated gzip
		return &TruncatedError{File: r.name, Line: r.line + 1}
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%s: the line is %w: the recording was altered; remove the line or record again",
			place(r.name, r.line+1), ErrTooLong)
	}
	return fmt.Errorf("%s: read the recording: %w", place(r.name, r.line+1), err)
}

func decode(line []byte, version int) (e event.Event, err error) {
	kind, raw, quick := split(line, &e.Time)
	if quick && event.New(kind) != nil {
		if e.Body, err = decodeBody(kind, raw, version); err == nil {
			return e, nil
		}
	}
	return decodeAny(line, version)
}

// split parses a line in the Writer's layout, which saves a second JSON parse. raw may be no JSON.
func split(line []byte, at *int64) (kind string, raw []byte, ok bool) {
	rest, found := bytes.CutPrefix(bytes.Trim(line, " \t\r\n"), []byte(`{"t":`))
	comma := bytes.IndexByte(rest, ',')
	if !found || comma < 0 || len(rest) < 2 || rest[len(rest)-1] != '}' {
		return "", nil, false
	}
	t, err := strconv.ParseInt(string(rest[:comma]), 10, 64)
	if err != nil || strconv.FormatInt(t, 10) != string(rest[:comma]) {
		return "", nil, false
	}
	rest, found = bytes.CutPrefix(rest[comma:len(rest)-1], []byte(`,"`))
	colon := bytes.Index(rest, []byte(`":`))
	if !found || colon < 0 || bytes.ContainsAny(rest[:colon], `"\`) {
		return "", nil, false
	}
	*at = t
	return string(rest[:colon]), rest[colon+2:], true
}

func decodeBody(kind string, raw []byte, version int) (event.Body, error) {
	body := event.New(kind)
	if len(raw) > MaxEvent && kind != "networks" && kind != "sandbox" {
		return nil, fmt.Errorf("%s: longer than %d bytes", kind, MaxEvent)
	}
	decode := json.Unmarshal
	if version == 1 {
		decode = decode1
	}
	if err := decode(raw, body); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	clean(body)
	return body, nil
}

func decodeAny(line []byte, version int) (event.Event, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return event.Event{}, err
	}
	var e event.Event
	t, ok := fields["t"]
	if !ok || string(t) == "null" {
		return e, errors.New(`it has no time "t"`)
	}
	if err := json.Unmarshal(t, &e.Time); err != nil {
		return e, fmt.Errorf(`"t": %w`, err)
	}
	delete(fields, "t")
	if len(fields) == 0 {
		return e, errors.New("it says nothing but its time")
	}
	for kind, raw := range fields {
		if event.New(kind) == nil {
			continue
		}
		if e.Body != nil {
			return event.Event{}, errors.New("it is two events in one")
		}
		body, err := decodeBody(kind, raw, version)
		if err != nil {
			return event.Event{}, err
		}
		e.Body = body
	}
	return e, nil
}

// Close closes the file of Open.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
