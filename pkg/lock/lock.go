// Package lock lets one cniscope observe a node, since two would count everything twice.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTaken means that another process holds the lock.
var ErrTaken = errors.New("another process has it locked")

// HeldError means that another cniscope observes the node.
type HeldError struct {
	// Holder is the file's text: "pid 4711, in a pod, /usr/bin/cniscope, since …".
	Holder string
	File   string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("cniscope already observes this node (%s, lock %s); stop it first", e.Holder, e.File)
}

// ExitCode is EX_TEMPFAIL of sysexits(3).
func (e *HeldError) ExitCode() int { return 75 }

// Wait calls Take every interval until it succeeds, or ctx ends with the last error.
func Wait(ctx context.Context, dir, who string, every time.Duration) (release func(), err error) {
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		release, err = Take(dir, who)
		if !errors.As(err, new(*HeldError)) {
			return release, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}
