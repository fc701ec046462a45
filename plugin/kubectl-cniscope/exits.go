package main

import (
	"errors"

	"github.com/cniscope/cniscope/pkg/fleet/digest"
)

// What the program ends with. docs/fleet.md has the same table.
const (
	exitDone = 0
	// exitFailed: it could not, or doctor found a problem or a warning.
	exitFailed = 1
	// exitUsage: the arguments are wrong.
	exitUsage = 2
	// exitPartial: some nodes did not answer, and what the others said is printed.
	exitPartial = 3
	// exitInterrupted: as a shell has it, after Ctrl-C.
	exitInterrupted = 130
)

// usageError is a mistake in how the program was called.
type usageError struct{ error }

// codeError ends the program with a code.
type codeError struct {
	error
	code int
}

func exitCode(err error) int {
	var usage usageError
	var coded codeError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// partial is the error of an answer in which nodes are missing, each named; nil if all have answered.
func partial(n digest.Nodes) error {
	if len(n.Missing) == 0 {
		return nil
	}
	var lines []error
	for _, line := range n.Lines() {
		lines = append(lines, errors.New(line))
	}
	if n.Answered == 0 {
		return codeError{errors.Join(lines...), exitFailed}
	}
	return codeError{errors.Join(lines...), exitPartial}
}
