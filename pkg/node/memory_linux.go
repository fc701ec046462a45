package node

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// beginning is how long whatever a started cniscope starts takes to begin: sources, destinations, a first look at
	// the node. It is chosen: a second is usual, and what was released too early is mapped again.
	beginning = 5 * time.Second
	// releaseEvery is how often what is not in use is given back. What is mapped of the program again while pods come
	// and go is some 7 MiB, which takes 1,700 page faults, a millisecond or two.
	releaseEvery = time.Minute
	// allocatedMost is how much may be allocated before garbage is worth a collection, in bytes: what a pod or two take.
	allocatedMost = 4 << 20
)

// mapSparsely has no more of the program mapped than is used. What is mapped already, releaseUnused gives back.
func mapSparsely(log *slog.Logger) {
	if err := procfs.MapSparsely(); err != nil {
		log.Debug("what lies around the pages of the program that are used is in memory, too", "error", err)
	}
}

// releaseUnused gives back what only the beginning needed, once the probe was attached, and from then on what a burst of
// pods has left, and what is mapped of the program for what happened once.
func releaseUnused(ctx context.Context, log *slog.Logger, attached <-chan struct{}) {
	select {
	case <-attached:
	case <-ctx.Done():
		return
	}
	collected, told := uint64(0), false
	for wait := beginning; ; wait = releaseEvery {
		if err := procfs.ReleaseProgram(); err != nil && !told {
			log.Debug("what is mapped of the program stays in memory", "error", err)
			told = true
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		// Without pods nothing is allocated, and the heap would stay as large as the last burst made it.
		if all := allocated(); all-collected > allocatedMost {
			debug.FreeOSMemory()
			collected = all
		}
	}
}

// allocated is what was ever allocated, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
