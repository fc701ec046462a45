// Package procfs is the only reader of process data in /proc. It converts units, bounds reads that can hang
// (Memory), and distinguishes processes with equal PIDs; github.com/prometheus/procfs parses.
//
// PIDs are those of the PID namespace in which /proc was mounted. Names, arguments and environments are unsanitized.
package procfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Tick is the unit in /proc/PID/stat: USER_HZ is 100 on Go's architectures (include/asm-generic/param.h).
const Tick = 10 * time.Millisecond

// InitialPID is PROC_PID_INIT_INO (include/linux/proc_ns.h).
const InitialPID = 0xEFFFFFFC

// InitialUser is PROC_USER_INIT_INO (include/linux/proc_ns.h).
const InitialUser = 0xEFFFFFFD

// Stat is from /proc/PID/stat.
type Stat struct {
	Name            string // up to 15 arbitrary bytes
	State           string
	Parent, Session int
	Start           int64 // ns since boot, rounded down to a Tick
	CPU             int64 // user and system, ns in steps of a Tick
}

// Extent has the addresses of a process's arguments and environment; zero if hidden. The kernel randomizes it with each
// exec.
type Extent struct{ Args, ArgsEnd, Env, EnvEnd uint64 }

// StatOf reads a process's stat. See Gone for the error.
func StatOf(pid int) (Stat, error) {
	s, _, err := readStat(pid)
	return s, err
}

// ExtentOf also returns the extent.
func ExtentOf(pid int) (s Stat, at Extent, err error) {
	s, fields, err := readStat(pid)
	if len(fields) >= 49 {
		for i, to := range []*uint64{&at.Args, &at.ArgsEnd, &at.Env, &at.EnvEnd} {
			*to, _ = strconv.ParseUint(fields[45+i], 10, 64)
		}
	}
	return s, at, err
}

func readStat(pid int) (s Stat, fields []string, err error) {
	file, err := syscall.Open(path(pid, "stat"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return s, nil, err
	}
	defer syscall.Close(file)
	var data [1024]byte
	n, err := syscall.Read(file, data[:])
	if err != nil {
		return s, nil, err
	}
	return parseStat(string(data[:n]))
}

// parseStat also returns the fields from the third on (proc(5)).
func parseStat(line string) (s Stat, fields []string, err error) {
	from, to := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	fields = strings.Fields(line[max(to+1, 0):])
	if from < 0 || to < from || len(fields) < 20 {
		return s, nil, fmt.Errorf("stat of a process is %q", line)
	}
	number := func(field int) (n int64) {
		value, wrong := strconv.ParseInt(fields[field-3], 10, 64)
		err = errors.Join(err, wrong)
		return value
	}
	s = Stat{
		Name: line[from+1 : to], State: fields[0], Parent: int(number(4)), Session: int(number(6)),
		Start: number(22)*int64(Tick) - clock.Shift(), CPU: (number(14) + number(15)) * int64(Tick),
	}
	return s, fields, err
}

// Gone reports whether the process exited.
func Gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// Zombie reports whether the first thread exited: others may run, but the executable is unreadable.
func (s Stat) Zombie() bool { return s.State == "Z" }

// BeganAt reports whether start, the kernel's in ns since boot, is /proc's: they differ by up to a Tick.
func (s Stat) BeganAt(start int64) bool {
	const tick = int64(Tick)
	return s.Start <= start+tick && start < s.Start+2*tick
}

// Alive reports whether pid began at start, and its first thread runs.
func Alive(pid int, start int64) bool {
	s, err := StatOf(pid)
	return err == nil && !s.Zombie() && s.BeganAt(start)
}

// Exists is Alive for any thread. An unreadable process exists.
func Exists(pid int, start int64) bool {
	s, err := StatOf(pid)
	if err != nil {
		return !Gone(err)
	}
	return s.BeganAt(start)
}

// Status is from /proc/PID/status.
type Status struct {
	UID                uint64 // the real UID
	Effective, Ambient uint64
	Pauses             uint64 // voluntary context switches of the first thread
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

// All lists all PIDs, unordered.
func All() ([]int, error) {
	all, err := procfs.AllProcs()
	pids := make([]int, len(all))
	for i, p := range all {
		pids[i] = p.PID
	}
	return pids, err
}

// Executable returns the path of the executable, even a deleted one, as the process sees it.
func Executable(pid int) (string, error) {
	file, err := os.Readlink(Runs(pid))
	return strings.TrimSuffix(file, " (deleted)"), err
}

// Wchan returns the kernel function in which a process sleeps; empty if unknown. It needs CAP_SYS_PTRACE.
func Wchan(pid int) string {
	channel, err := os.ReadFile(path(pid, "wchan"))
	if err != nil || string(channel) == "0" {
		return ""
	}
	return string(channel)
}

// Namespace returns the inode of a namespace: "net", "mnt", "pid" or "user". It needs CAP_SYS_PTRACE for other users.
func Namespace(pid int, kind string) (inode uint32, err error) {
	return namespace(path(pid, "ns/"+kind))
}

// Opened returns when an open or mounted namespace was first opened.
func Opened(pid int, kind string) (at time.Time, err error) {
	info, err := os.Stat(path(pid, "ns/"+kind))
	if err != nil {
		return at, err
	}
	return info.ModTime(), nil
}

// OwnNamespace is Namespace for this process, in any PID namespace.
func OwnNamespace(kind string) (inode uint32, err error) { return namespace("/proc/self/ns/" + kind) }

func namespace(file string) (inode uint32, err error) {
	link, err := os.Readlink(file)
	if err != nil {
		return 0, err
	}
	number, is := strings.CutPrefix(link, file[strings.LastIndexByte(file, '/')+1:]+":[")
	n, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
	if !is || err != nil {
		return 0, fmt.Errorf("%s leads to %q", file, link)
	}
	return uint32(n), nil
}

// Runs returns a path that opens the executable, even if another file has its name now. Opening may hang.
func Runs(pid int) string { return path(pid, "exe") }

// Root returns the path of a process's root directory. Links below it may lead outside, and mounts may hang.
func Root(pid int) string { return path(pid, "root") }

func path(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}
