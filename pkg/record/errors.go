package record

import (
	"errors"
	"fmt"
)

// What can be wrong with a recording. Each error is wrapped with the place and the remedy.
var (
	// ErrNotRecording: the first line is not a recording's header.
	ErrNotRecording = errors.New("not a cniscope recording")
	// ErrNewer: the recording was written in a newer version of the format.
	ErrNewer = errors.New("recorded by a newer cniscope")
	// ErrBroken: a line is not an event.
	ErrBroken = errors.New("broken line")
	// ErrTooLong: a line, or an event to write, is longer than MaxLine.
	ErrTooLong = fmt.Errorf("longer than %d bytes", MaxLine)
)

// TruncatedError means that a recording ends in the middle of a line: its writer was killed, or the
// copy is incomplete. All events before that were delivered, and can be used.
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

// BoundError means that a recording is longer than Reader.Bound allows. All events before that were
// delivered.
type BoundError struct {
	// File is the file's path; empty if unknown. Line is the first that was not read.
	File string
	Line int
	// More is the bound that was exceeded: "4194304 events".
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
