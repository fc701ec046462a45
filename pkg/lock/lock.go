// Package lock lets one cniscope observe a node at a time: two would count and report everything twice.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HeldError says who holds the node.
type HeldError struct {
	// Holder is what the other one wrote into the lock, "pid 4711, in a pod, /usr/bin/cniscope, since …".
	Holder string
	File   string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("cniscope already observes this node (%s, lock %s); stop that one first, or give this one another state.dir",
		e.Holder, e.File)
}

// ExitCode is the program's where the node is taken: EX_TEMPFAIL of sysexits(3), try again later.
func (e *HeldError) ExitCode() int { return 75 }

// Wait is Take for one that is to come after whoever has the node: it tries again until ctx ends,
// every so often. The error is the last that Take returned.
func Wait(ctx context.Context, dir, who string, every time.Duration) (release func(), err error) {
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		release, err = Take(dir, who)
		if held := (*HeldError)(nil); !errors.As(err, &held) {
			return release, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}
