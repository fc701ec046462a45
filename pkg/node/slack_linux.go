package node

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patient is how late the kernel may wake the threads of cniscope run from timers, a tenth of a tick. Records and
	// requests wake them at once. Go's monitor thread wakes every 20 µs after a system call, which was a sixth of the CPU
	// time of a pod.
	patient = 5 * time.Millisecond
	// punctual is the kernel's own default, for the process that reads the process connector (init/init_task.c).
	punctual = 50 * time.Microsecond
)

// SetSlack gives all threads of the process the slack of its command, by executing the program again if necessary: a
// thread inherits its slack, Go's monitor thread starts before main, and CAP_SYS_NICE would be needed to change it later.
// If that fails, cniscope only needs more CPU. After an upgrade another file lies at the program's path, which setSlack
// must not execute.
func SetSlack(args []string) {
	want, wanted := slackOf(args)
	runtime.LockOSThread() // it is this thread's that the program begins with
	defer runtime.UnlockOSThread()
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if !wanted || err != nil || before == int(want) {
		return
	}
	file, err := os.Executable()
	if err != nil || !isRunning(file) || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(want), 0, 0, 0) != nil {
		return
	}
	// Check that it was set, or the program would execute itself for ever.
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && now == int(want) {
		_ = syscall.Exec(file, args, os.Environ())
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0)
}

// isRunning reports whether a file is the one that this process runs.
func isRunning(file string) bool {
	there, err := os.Stat(file)
	if err != nil {
		return false
	}
	running, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(there, running)
}

// slackOf is the slack for a command line; false where it may be as it is.
func slackOf(args []string) (slack time.Duration, wanted bool) {
	switch {
	case Preinstalled() && len(args) == 1, len(args) > 1 && args[1] == "run":
		return patient, true
	case len(args) > 1 && args[1] == Connector:
		return punctual, true
	}
	return 0, false
}
