package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/control"
)

const (
	polling  = 50 * time.Second
	lateness = 15 * time.Second
	atOnce   = 500 // per answer
	// before is how far a restarted reader looks back.
	before                   = 10 * time.Second
	firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second
)

type batch struct {
	lines     []control.Line
	forgotten uint64
}

type follower struct {
	node control.Reader
	log  *slog.Logger
}

// follow passes on operations until ctx ends. A slow receiver does not block: the history buffers.
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
			clock.Wait(ctx, pause)
			pause = min(2*pause, longestPause)
			continue
		}
		if silent {
			f.log.Info("cniscope answers again")
		}
		pause, silent = firstPause, false
		if query.After == 0 {
			found.Forgotten = 0 // before the start
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
