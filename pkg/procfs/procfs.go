// Package procfs is the one reader of what /proc says about processes. Parsing is left to
// github.com/prometheus/procfs; this package keeps what cniscope asks, in its units, bounds
// reads that can hang (Memory), and tells a process from a later one with the same PID.
//
// PIDs are those of the PID namespace that /proc was mounted in. What a process chooses (its
// name, arguments, environment) is returned as it is: clean it before it is shown.
package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every architecture that
// Linux supports in Go (include/asm-generic/param.h).
const Tick = 10 * time.Millisecond

// InitialPID is the inode of the initial PID namespace: PROC_PID_INIT_INO (include/linux/proc_ns.h).
const InitialPID = 0xEFFFFFFC

// InitialUser is the inode of the initial user namespace: PROC_USER_INIT_INO (include/linux/proc_ns.h).
const InitialUser = 0xEFFFFFFD

// Stat is what /proc/PID/stat says about a process.
type Stat struct {
	Name            string // what the kernel calls it, of a program at most 15 bytes; any bytes
	State           string // proc(5): "R", "S", "D", "Z"…
	Parent, Session int
	Start           int64 // ns since boot, rounded down to a Tick
	CPU             int64 // ns of user and system time, in steps of a Tick
}

// StatOf reads the stat of a process. Gone tells from the error whether there is none.
func StatOf(pid int) (Stat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Stat{}, err
	}
	s, err := p.Stat()
	if err != nil {
		return Stat{}, err
	}
	return Stat{
		Name: s.Comm, State: s.State, Parent: s.PPID, Session: s.Session,
		Start: int64(s.Starttime)*int64(Tick) - clock.Shift(), CPU: int64(s.UTime+s.STime) * int64(Tick),
	}, nil
}

// Gone reports whether an error says that there is no such process any more.
func Gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// Zombie reports whether the first thread has ended. Other threads may still run, but what the
// process runs cannot be read any more.
func (s Stat) Zombie() bool { return s.State == "Z" }

// BeganAt reports whether the process began at start, in ns since boot, as exactly as /proc
// can tell: a caller's start is the kernel's own, rounded by up to a Tick either way.
func (s Stat) BeganAt(start int64) bool {
	const tick = int64(Tick)
	return s.Start <= start+tick && start < s.Start+2*tick
}

// Alive reports whether pid is still the process that began at start (BeganAt), and its first
// thread has not ended.
func Alive(pid int, start int64) bool {
	s, err := StatOf(pid)
	return err == nil && !s.Zombie() && s.BeganAt(start)
}

// Exists reports whether pid is still the process that began at start, even if only threads
// other than its first still run. A process that cannot be read counts as existing.
func Exists(pid int, start int64) bool {
	s, err := StatOf(pid)
	if err != nil {
		return !Gone(err)
	}
	return s.BeganAt(start)
}

// Status is what /proc/PID/status says about a process's rights.
type Status struct {
	UID                uint64 // the real one
	Effective, Ambient uint64 // capabilities, one bit each
	Pauses             uint64 // how often its first thread gave up the CPU of itself
}

// StatusOf reads the status of a process.
func StatusOf(pid int) (Status, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Status{}, err
	}
	s, err := p.NewStatus()
	return Status{UID: s.UIDs[0], Effective: s.CapEff, Ambient: s.CapAmb, Pauses: s.VoluntaryCtxtSwitches}, err
}

// All lists the PIDs of all processes, in no particular order.
func All() ([]int, error) {
	all, err := procfs.AllProcs()
	pids := make([]int, len(all))
	for i, p := range all {
		pids[i] = p.PID
	}
	return pids, err
}

// Executable is the path of the file that a process runs, as the process sees it, also if it
// has been deleted or replaced since.
func Executable(pid int) (string, error) {
	file, err := os.Readlink(Runs(pid))
	return strings.TrimSuffix(file, " (deleted)"), err
}

// Wchan is the kernel function that a process sleeps in; empty if it does not sleep, or we
// lack CAP_SYS_PTRACE.
func Wchan(pid int) string {
	channel, err := os.ReadFile(path(pid, "wchan"))
	if err != nil || string(channel) == "0" {
		return ""
	}
	return string(channel)
}

// Namespace is the inode of the namespace of a kind ("net", "mnt", "pid", "user") that a
// process is in. Of another user's process it takes CAP_SYS_PTRACE.
func Namespace(pid int, kind string) (inode uint32, err error) {
	return namespace(path(pid, "ns/"+kind))
}

// OwnNamespace is that of the calling process, also where its PID in /proc is another.
func OwnNamespace(kind string) (inode uint32, err error) { return namespace("/proc/self/ns/" + kind) }

func namespace(file string) (inode uint32, err error) {
	link, err := os.Readlink(file)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(link, filepath.Base(file)+":[%d]", &inode); err != nil {
		return 0, fmt.Errorf("%s leads to %q: %w", file, link, err)
	}
	return inode, nil
}

// Runs is the path that leads to the very file that a process runs, whatever lies now where it was started from. Whoever
// opens it must expect a mount that hangs.
func Runs(pid int) string { return path(pid, "exe") }

// Root is the path under which a process's own file system is found. Whoever opens a file
// below it must expect links out of it, and mounts that hang.
func Root(pid int) string { return path(pid, "root") }

func path(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}
