// Package record writes events to a file and reads them back: the recording is
// the contract between what was observed on a node and everything that is
// concluded from it.
//
// A recording is text, one JSON object a line, optionally gzipped. The first line
// is the Header, every other line one event:
//
//	{"cniscope":"recording","version":2,"writer":"0.1.0","kernel":"6.12.9", … }
//	{"t":81230111,"exec":{"process":"…","pid":4711,"file":"/opt/cni/bin/bridge", … }}
//	{"t":81270950,"exit":{"process":"…","code":1}}
//
// The version says what a reader must understand. New kinds of events and new
// fields do not change it: a reader skips and counts the kinds it does not know,
// and ignores fields. Recordings of version 1 are converted on reading (version1.go).
//
// A recording comes from elsewhere, with a bug report perhaps, so the reader
// trusts nothing in it: lines, events and what it unpacks to are bounded, and every
// string is cleaned again.
package record

import "encoding/json"

// Version is the version of the format that this package writes, and the newest
// that it reads.
const Version = 2

// MaxLine is the longest line of a recording in bytes, its line feed included. The
// longest events are those of a large CNI folder or of a pod with many labels, and
// sources keep both far below it.
const MaxLine = 1 << 20

// What is read of a recording at the most by whoever only looks at it (Reader.Bound). Ordinary
// events have some 200 bytes, a pod's setup and teardown 100 KiB together: that is 5000 pods,
// and a gigabyte of JSON would be minutes of work.
const (
	// MaxBytes is how many bytes are read, unpacked.
	MaxBytes = 512 << 20
	// MaxEvents is how many events.
	MaxEvents = 4 << 20
	// MaxEvent is the longest line of an event in bytes, but for networks and sandboxes:
	// those are few, and may hold what people wrote.
	MaxEvent = 64 << 10
)

// format is what a recording's first line says it is.
const format = "recording"

// Header is the first line of a recording: what one must know of the node to
// read the rest.
type Header struct {
	// Format and Version are set by the writer.
	Format  string `json:"cniscope"`
	Version int    `json:"version"`
	// Writer is the version of the cniscope that recorded.
	Writer string `json:"writer"`
	Kernel string `json:"kernel,omitempty"`
	// BootID reports whether two recordings share one monotonic clock.
	BootID string `json:"boot_id,omitempty"`
	Node   string `json:"node,omitempty"`
	// Arch is GOARCH of the recording node.
	Arch string `json:"arch,omitempty"`
	// Options are those that the judgement depends on, a JSON object whose meaning
	// is the caller's. Never secrets, and nothing about where spans are sent.
	Options json.RawMessage `json:"options,omitempty"`
	// Clock is one instant on both clocks, taken when the recording began.
	Clock Clock `json:"clock"`
}

// Clock is one instant on the monotonic clock and on the calendar, in nanoseconds
// since the clock's own zero and since 1970.
type Clock struct {
	Mono int64 `json:"mono"`
	Wall int64 `json:"wall"`
}
