// Package record writes and reads recordings of events.
//
// A recording is text, optionally gzipped: one JSON object a line, the Header and then events:
//
//	{"cniscope":"recording","version":2,"writer":"0.1.0","kernel":"6.12.9", … }
//	{"t":81270950,"exit":{"process":"…","code":1}}
//
// New kinds and fields do not change the version: a reader counts unknown kinds and ignores unknown fields. It bounds
// lines, events and unpacked bytes, and cleans every string: a recording may come from a stranger.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Version is written, and the newest that is read.
const Version = 2

// maxLine bounds a line in bytes, far above real events.
const maxLine = 1 << 20

// Bounds for viewing (Reader.Bound): 5000 pods of 100 KiB, with 200 bytes an event.
const (
	// Bytes of an unpacked recording.
	MaxBytes  = 512 << 20
	MaxEvents = 4 << 20
	// Bytes of an event, except networks and sandboxes, which hold people's text.
	MaxEvent = 64 << 10
)

const format = "recording"

// Header is the first line of a recording.
type Header struct {
	Format  string `json:"cniscope"`
	Version int    `json:"version"`
	Writer  string `json:"writer"`
	Kernel  string `json:"kernel,omitempty"`
	// BootID is equal in recordings with the same monotonic clock.
	BootID string `json:"boot_id,omitempty"`
	Node   string `json:"node,omitempty"`
	Arch   string `json:"arch,omitempty"`
	// Options are those that affect judging, without secrets: a JSON object.
	Options json.RawMessage `json:"options,omitempty"`
	Clock   Clock           `json:"clock"`
}

// Clock is one instant, in monotonic ns and in ns since 1970.
type Clock struct {
	Mono int64 `json:"mono"`
	Wall int64 `json:"wall"`
}

// Errors of a recording.
var (
	ErrNotRecording = errors.New("not a cniscope recording")
	ErrNewer        = errors.New("recorded by a newer cniscope")
	ErrBroken       = errors.New("broken line")
	// ErrTooLong means a line, or an event to write, beyond 1 MiB.
	ErrTooLong = fmt.Errorf("longer than %d bytes", maxLine)
)

// TruncatedError means that a recording ends within a line: its writer was killed, or the copy is incomplete. Earlier
// events are valid.
type TruncatedError struct {
	File string
	Line int
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: the recording ends within a line (its writer was killed, or the copy is incomplete); "+
		"only complete lines were read", place(e.File, e.Line))
}

// BoundError means that a recording exceeds Reader.Bound, such as More: "4194304 events". Earlier events are valid.
// Line is the first unread one.
type BoundError struct {
	File string
	Line int
	More string
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("%s: there are more than %s, and no more of one recording is read; "+
		"for the rest make one of its first line and of those from %d on (head, tail)",
		place(e.File, e.Line), e.More, e.Line)
}

func place(file string, line int) string {
	if file == "" {
		file = "recording"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
