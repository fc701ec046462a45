package node

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// patient is a tenth of a tick. Go's monitor thread wakes every 20 µs after a system call, a sixth of a pod's CPU
	// time.
	patient = 5 * time.Millisecond
	// punctual is the kernel's default (init/init_task.c), for the process connector.
	punctual = 50 * time.Microsecond
)

// SetSlack executes the program again, so that all threads inherit its slack: Go's monitor thread starts before
// main, and changing it later needs CAP_SYS_NICE. On failure, cniscope uses more CPU.
func SetSlack(args []string) {
	want, wanted := slackOf(args)
	runtime.LockOSThread() // execve keeps this thread's slack
	defer runtime.UnlockOSThread()
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if !wanted || err != nil || before == int(want) {
		return
	}
	file, err := os.Executable()
	if err != nil || !isRunning(file) || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(want), 0, 0, 0) != nil {
		return
	}
	// Unless it was set, the program would execute itself forever.
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && now == int(want) {
		_ = syscall.Exec(file, args, os.Environ())
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0)
}

func isRunning(file string) bool {
	there, err := os.Stat(file)
	if err != nil {
		return false
	}
	running, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(there, running)
}

func slackOf(args []string) (slack time.Duration, wanted bool) {
	switch {
	case Preinstalled() && len(args) == 1, len(args) > 1 && args[1] == "run":
		return patient, true
	case len(args) > 1 && args[1] == Connector:
		return punctual, true
	}
	return 0, false
}

const (
	// beginning bounds the start, usually a second. Memory released too early is mapped again.
	beginning = 5 * time.Second
	// releaseEvery is the pace of releases: each maps 7 MiB again, 1,700 page faults, 1 to 2 ms.
	releaseEvery = time.Minute
	// allocatedMost is the bytes allocated before a collection: one or two pods.
	allocatedMost = 4 << 20
)

func mapSparsely(log *slog.Logger) {
	if err := procfs.MapSparsely(); err != nil {
		log.Debug("unused pages around used ones stay in memory", "error", err)
	}
}

func releaseUnused(ctx context.Context, log *slog.Logger, attached <-chan struct{}) {
	select {
	case <-attached:
	case <-ctx.Done():
		return
	}
	collected, told := uint64(0), false
	for wait := beginning; ; wait = releaseEvery {
		if err := procfs.ReleaseProgram(); err != nil && !told {
			log.Debug("mapped pages of the program stay in memory", "error", err)
			told = true
		}
		if !clock.Wait(ctx, wait) {
			return
		}
		// Without pods nothing is allocated, so Go does not collect.
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
