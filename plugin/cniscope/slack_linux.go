package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patient is by how much the kernel may wake a thread of cniscope run late that only waits for a time to come. Whoever
	// waits for a record or a request is woken at once. Go's monitor thread looks every 20 µs at first whether somebody is
	// held up in a system call, whenever there was one, and was a sixth of what a pod cost. It is chosen: a tenth of a tick.
	patient = 5 * time.Millisecond
	// punctual is the kernel's own default, for the process that reads the process connector (init/init_task.c).
	punctual = 50 * time.Microsecond
)

// setSlack has all threads of the process wait as precisely as what it runs as wants, by beginning the program anew where
// that is not so: a thread has this from the one that started it, and Go's monitor thread is there before anything of ours is.
// For threads that are there it would take CAP_SYS_NICE. Where it cannot be done all works the same and takes more CPU.
// It is not done where another file lies at the program's path by now, after an upgrade: it would be executed instead.
func setSlack(args []string) {
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
	// Only where it was set: it would begin anew for ever.
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
	case preinstalled() && len(args) == 1, len(args) > 1 && args[1] == "run":
		return patient, true
	case len(args) > 1 && args[1] == connectorCommand:
		return punctual, true
	}
	return 0, false
}
