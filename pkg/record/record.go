// Package record writes events to a file and reads them back.
//
// A recording is text, optionally gzipped: one JSON object a line. The first line is the Header, each other line an
// event:
//
//	{"cniscope":"recording","version":2,"writer":"0.1.0","kernel":"6.12.9", … }
//	{"t":81230111,"exec":{"process":"…","pid":4711,"file":"/opt/cni/bin/bridge", … }}
//	{"t":81270950,"exit":{"process":"…","code":1}}
//
// The version says what a reader must understand. New kinds of events and new fields do not change it: a reader skips
// and counts unknown kinds, and ignores unknown fields. Recordings of version 1 are converted on reading
// (version1.go).
//
// A recording may come from a stranger, with a bug report, so the reader bounds lines, events and unpacked bytes, and
// cleans every string again.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Version is the version that this package writes, and the newest that it reads.
const Version = 2

// MaxLine is the length of the longest line in bytes, with its line feed. The longest events are those of a large CNI
// directory and of a pod with many labels; sources bound both far below it.
const MaxLine = 1 << 20

// Bounds for viewing a recording (Reader.Bound): 5000 pods, with about 200 bytes an event and 100 KiB for a pod's
// setup and teardown. A gigabyte of JSON would take minutes.
const (
	// MaxBytes is the number of unpacked bytes.
	MaxBytes  = 512 << 20
	MaxEvents = 4 << 20
	// MaxEvent is the length of an event in bytes. Networks and sandboxes may be longer: they are few, and hold text
	// written by people.
	MaxEvent = 64 << 10
)

// format identifies the first line of a recording.
const format = "recording"

// Header is the first line of a recording: facts about the node.
type Header struct {
	// Format and Version are set by the writer.
	Format  string `json:"cniscope"`
	Version int    `json:"version"`
	// Writer is the version of the cniscope that recorded.
	Writer string `json:"writer"`
	Kernel string `json:"kernel,omitempty"`
	// BootID is equal for recordings that share one monotonic clock.
	BootID string `json:"boot_id,omitempty"`
	Node   string `json:"node,omitempty"`
	// Arch is GOARCH of the recording node.
	Arch string `json:"arch,omitempty"`
	// Options are a JSON object of the caller: the options that affect judging, without secrets or export
	// destinations.
	Options json.RawMessage `json:"options,omitempty"`
	// Clock is one instant on both clocks, when the recording began.
	Clock Clock `json:"clock"`
}

// Clock is one instant on the monotonic clock, in ns since its zero, and on the wall clock, in ns since 1970.
type Clock struct {
	Mono int64 `json:"mono"`
	Wall int64 `json:"wall"`
}

// Errors of a recording. Each is wrapped with the place and the remedy.
var (
	// ErrNotRecording: the first line is not a recording's header.
	ErrNotRecording = errors.New("not a cniscope recording")
	// ErrNewer: the recording has a newer version of the format.
	ErrNewer = errors.New("recorded by a newer cniscope")
	// ErrBroken: a line is not an event.
	ErrBroken = errors.New("broken line")
	// ErrTooLong: a line, or an event to write, exceeds MaxLine.
	ErrTooLong = fmt.Errorf("longer than %d bytes", MaxLine)
)

// TruncatedError means that a recording ends within a line: its writer was killed, or the copy is incomplete. All
// earlier events were delivered, and are valid.
type TruncatedError struct {
	// File is the file's path; empty if unknown.
	File string
	// Line is the number of the incomplete line, from 1.
	Line int
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: the recording is cut off here (its writer was killed, or the copy is incomplete); what is before it can be used",
		place(e.File, e.Line))
}

// BoundError means that a recording exceeds Reader.Bound. All earlier events were delivered.
type BoundError struct {
	// File is the file's path; empty if unknown. Line is the first unread line.
	File string
	Line int
	// More is the exceeded bound: "4194304 events".
	More string
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("%s: there are more than %s, and no more of one recording is read; for the rest make one of its first line and of those from %d on (head, tail)",
		place(e.File, e.Line), e.More, e.Line)
}

func place(file string, line int) string {
	if file == "" {
		file = "recording"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
