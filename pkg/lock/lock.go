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
	// Holder is what the other one wrote into the lock, "pid 4711, since …".
	Holder string
	File   string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("cniscope already observes this node (%s, lock %s); stop that one first, or give this one another state.dir",
		e.Holder, e.File)
}

// Wait is Take for one whose predecessor is about to end: it gives that one time. The
// error is the last that Take returned.
func Wait(ctx context.Context, dir string, patience time.Duration) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		release, err = Take(dir)
		if held := (*HeldError)(nil); !errors.As(err, &held) {
			return release, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}
