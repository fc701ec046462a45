package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// beginning is how long whatever a started cniscope starts takes to begin: sources, destinations, a first look at
	// the node. It is chosen: a second is usual, and what was released too early is mapped again.
	beginning = 5 * time.Second
	// releaseEvery is how often what is mapped of the program and was not used lately is given back. What is used while
	// pods come and go is some 7 MiB, which takes 1,700 page faults, a millisecond or two.
	releaseEvery = time.Minute
)

// releaseUnused has no more of the program mapped than is used, gives back the memory that only the beginning needed, once
// the probe was attached, and from then on what is mapped of the program for what happened once.
func releaseUnused(ctx context.Context, log *slog.Logger, attached <-chan struct{}) {
	if err := procfs.MapSparsely(); err != nil {
		log.Debug("what lies around the pages of the program that are used is in memory, too", "error", err)
	}
	select {
	case <-attached:
	case <-ctx.Done():
		return
	}
	for wait := beginning; ; wait = releaseEvery {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if wait == beginning {
			debug.FreeOSMemory()
		}
		if err := procfs.ReleaseProgram(); err != nil {
			log.Debug("what is mapped of the program stays in memory", "error", err)
			return
		}
	}
}
