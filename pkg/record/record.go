// Package record writes and reads recordings of events.
//
// A recording is text, optionally gzipped: one JSON object a line. The first line is the Header, each other line an
// event:
//
//	{"cniscope":"recording","version":2,"writer":"0.1.0","kernel":"6.12.9", … }
//	{"t":81230111,"exec":{"process":"…","pid":4711,"file":"/opt/cni/bin/bridge", … }}
//	{"t":81270950,"exit":{"process":"…","code":1}}
//
// New kinds of events and new fields do not change the version: a reader counts unknown kinds, and ignores unknown
// fields. Version 1 is converted (version1.go). The reader bounds lines, events and unpacked bytes, and cleans every
// string, because a recording may come from a stranger.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Version is written, and the newest that is read.
const Version = 2

// MaxLine bounds a line in bytes with the line feed. The longest events, of CNI directories and pods with many labels,
// are far shorter.
const MaxLine = 1 << 20

// Bounds for viewing a recording (Reader.Bound): 5000 pods of 100 KiB, with 200 bytes an event.
const (
	// MaxBytes is unpacked.
	MaxBytes  = 512 << 20
	MaxEvents = 4 << 20
	// MaxEvent is the length of an event, except for the few networks and sandboxes, which hold people's text.
	MaxEvent = 64 << 10
)

const format = "recording"

// Header is the first line of a recording.
type Header struct {
	// Format and Version are the writer's.
	Format  string `json:"cniscope"`
	Version int    `json:"version"`
	// Writer is the version of the recording cniscope.
	Writer string `json:"writer"`
	Kernel string `json:"kernel,omitempty"`
	// BootID is equal for recordings with the same monotonic clock.
	BootID string `json:"boot_id,omitempty"`
	Node   string `json:"node,omitempty"`
	// Arch is the node's GOARCH.
	Arch string `json:"arch,omitempty"`
	// Options are a JSON object of the caller's options that affect judging, without secrets.
	Options json.RawMessage `json:"options,omitempty"`
	// Clock is from the beginning of the recording.
	Clock Clock `json:"clock"`
}

// Clock is one instant, in monotonic ns and in ns since 1970.
type Clock struct {
	Mono int64 `json:"mono"`
	Wall int64 `json:"wall"`
}

// Errors of a recording, wrapped with place and remedy.
var (
	ErrNotRecording = errors.New("not a cniscope recording")
	ErrNewer        = errors.New("recorded by a newer cniscope")
	ErrBroken       = errors.New("broken line") // no event
	// ErrTooLong is for a line, or an event to write, beyond MaxLine.
	ErrTooLong = fmt.Errorf("longer than %d bytes", MaxLine)
)

// TruncatedError means that a recording ends within a line: its writer was killed, or the copy is incomplete. Earlier
// events are valid. File may be empty; Line is from 1.
type TruncatedError struct {
	File string
	Line int
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: the recording is cut off here (its writer was killed, or the copy is incomplete); "+
		"what is before it can be used",
		place(e.File, e.Line))
}

// BoundError means that a recording exceeds Reader.Bound, such as More: "4194304 events". Earlier events are valid.
// File may be empty, Line is the first unread one.
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
