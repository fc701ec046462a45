package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// beginning is how long whoever is started by a started cniscope takes to begin: sources, destinations, a first look
// at the node. It is chosen: a second is usual, and what was released too early is mapped again.
const beginning = 5 * time.Second

// releaseBeginning gives back the memory that only the beginning needed, once the probe was attached.
func releaseBeginning(ctx context.Context, log *slog.Logger, attached <-chan struct{}) {
	select {
	case <-attached:
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(beginning):
	case <-ctx.Done():
		return
	}
	debug.FreeOSMemory()
	if err := procfs.ReleaseProgram(); err != nil {
		log.Debug("what of the program only its beginning needed stays in memory", "error", err)
	}
}
