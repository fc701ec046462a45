package record

import (
	"errors"
	"fmt"
)

// What can be wrong with a recording as a whole. All are wrapped with the place
// and the remedy.
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

// TruncatedError says that a recording ends in the middle of a line: its writer
// was killed, or the copy was cut. All whole events before that were delivered,
// so a reader may well go on with what it has.
type TruncatedError struct {
	// File is where it was read from; empty if unknown.
	File string
	// Line is the number of the line that is cut, from 1.
	Line int
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: the recording is cut off here (its writer was killed, or the copy is incomplete); what is before it can be used",
		place(e.File, e.Line))
}

// BoundError says that a recording holds more than is read of one. All events before that
// were delivered.
type BoundError struct {
	// File is where it was read from; empty if unknown. Line is the first that was not read.
	File string
	Line int
	// More is what there is more of, as "4194304 events".
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
