package main

import (
	"errors"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
)

// Exit codes; docs/fleet.md has the same table.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitInterrupted = 130
)

type codeError struct {
	error
	code int
}

func exitCode(err error) int {
	if coded, is := errors.AsType[codeError](err); is {
		return coded.code
	}
	if errors.As(err, new(command.Usage)) {
		return exitUsage
	}
	return exitFailed
}

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
