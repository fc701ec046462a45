package node

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patient is a tenth of a tick. Go's monitor thread wakes every 20 µs after a system call, a sixth of a pod's CPU
	// time.
	patient = 5 * time.Millisecond
	// punctual is the kernel's default (init/init_task.c), for the process connector.
	punctual = 50 * time.Microsecond
)

// SetSlack executes the program again, so that all threads inherit its slack: Go's monitor thread starts before
// main, and changing it later needs CAP_SYS_NICE. On failure, cniscope uses more CPU. A file that an upgrade put at
// the program's path is not executed.
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
