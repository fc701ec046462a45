package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
)

const (
	// polling is how long a question waits for an operation, and lateness how much later its answer may come.
	polling  = 50 * time.Second
	lateness = 15 * time.Second
	// atOnce bounds the operations of one answer.
	atOnce = 500
	// before is how long before it starts the reader looks back: an operation that ended while its container
	// started anew is told, too.
	before = 10 * time.Second
	// The pause after a question without an answer doubles from one to the other.
	firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second
)

// batch is what came, and how many operations were forgotten before anybody asked for them.
type batch struct {
	lines     []control.Line
	forgotten uint64
}

// follower follows what a node remembers.
type follower struct {
	node control.Reader
	log  *slog.Logger
}

// follow passes on each operation that ends from about now on, until ctx ends. A slow receiver holds up
// nobody: cniscope remembers them meanwhile, as long as it has room.
func (f *follower) follow(ctx context.Context, to chan<- batch) {
	query := control.Query{Problems: true, Since: time.Now().Add(-before), Wait: polling, Limit: atOnce}
	pause, silent := firstPause, false
	for ctx.Err() == nil {
		found, err := f.ask(ctx, query)
		if err != nil {
			if ctx.Err() == nil && !silent && !errors.Is(err, control.ErrBusy) {
				f.log.Warn("cniscope does not answer; asking again", "error", err)
				silent = true
			}
			wait(ctx, pause)
			pause = min(2*pause, longestPause)
			continue
		}
		if silent {
			f.log.Info("cniscope answers again")
		}
		pause, silent = firstPause, false
		if query.After == 0 {
			found.Forgotten = 0 // before we were there
		}
		query.After, query.Since = found.Next, time.Time{}
		if len(found.Operations) == 0 && found.Forgotten == 0 {
			continue
		}
		select {
		case to <- batch{found.Operations, found.Forgotten}:
		case <-ctx.Done():
		}
	}
}

func (f *follower) ask(ctx context.Context, query control.Query) (control.Operations, error) {
	ctx, cancel := context.WithTimeout(ctx, query.Wait+lateness)
	defer cancel()
	return f.node.Operations(ctx, query)
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
