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
	// beginning is the time until sources and destinations work. A second is usual; memory that was released too
	// early is mapped again.
	beginning = 5 * time.Second
	// releaseEvery is the pace of releases. Mapping the program again costs 7 MiB, 1,700 page faults, 1 to 2 ms.
	releaseEvery = time.Minute
	// allocatedMost is how many bytes are allocated before a collection: one or two pods.
	allocatedMost = 4 << 20
)

// mapSparsely maps only used pages of the program from now on.
func mapSparsely(log *slog.Logger) {
	if err := procfs.MapSparsely(); err != nil {
		log.Debug("what lies around the pages of the program that are used is in memory, too", "error", err)
	}
}

// releaseUnused releases memory that only the start needed, once the probe is attached, and then what bursts of pods
// left.
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
		// Without pods nothing is allocated, so Go would not collect.
		if all := allocated(); all-collected > allocatedMost {
			debug.FreeOSMemory()
			collected = all
		}
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
