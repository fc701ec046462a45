package procfs

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Thread is the state of a thread.
type Thread struct {
	ID      int
	State   string
	Channel string // kernel function, without compiler suffixes
	Start   int64  // as in Stat
}

// Threads reads up to most threads. Channel needs CAP_SYS_PTRACE for other users.
func Threads(pid, most int) ([]Thread, error) {
	dir, err := open(path(pid, "task"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	threads := make([]Thread, 0, len(names))
	for _, name := range names {
		if t := threadAt(int(dir.Fd()), name); t.State != "" {
			t.ID, _ = strconv.Atoi(name)
			threads = append(threads, t)
		}
	}
	return threads, err
}

// FirstThread reads a process's first thread; empty if it is gone.
func FirstThread(pid int) Thread {
	return threadAt(unix.AT_FDCWD, path(pid, "task/"+strconv.Itoa(pid)))
}

func threadAt(dir int, name string) Thread {
	stat := lineAt(dir, name+"/stat")
	t := Thread{State: stateIn(stat), Start: startIn(stat)}
	if t.State == "S" || t.State == "D" {
		t.Channel = channelIn(lineAt(dir, name+"/wchan"))
	}
	return t
}

// Ended reports whether all threads exited. Those beyond the limit count as running.
func Ended(pid int) bool {
	if s, err := StatOf(pid); err != nil || !s.Zombie() {
		return err != nil && Gone(err)
	}
	const most = 64
	threads, err := Threads(pid, most)
	return Gone(err) || err == nil && len(threads) < most &&
		!slices.ContainsFunc(threads, func(t Thread) bool { return t.State != "Z" && t.State != "X" })
}

func stateIn(stat string) string {
	end := strings.LastIndex(stat, ") ")
	if end < 0 {
		return ""
	}
	after := stat[end+2:]
	return after[:min(1, len(after))]
}

func startIn(stat string) int64 {
	rest := stat[strings.LastIndexByte(stat, ')')+1:]
	for range 20 {
		_, rest, _ = strings.Cut(rest, " ")
	}
	number, _, _ := strings.Cut(rest, " ")
	ticks, _ := strconv.ParseInt(number, 10, 64)
	return ticks*int64(Tick) - clock.Shift()
}

func channelIn(wchan string) string {
	name, _, _ := strings.Cut(wchan, ".")
	if name == "0" {
		return ""
	}
	return name
}

func lineAt(dir int, name string) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var line [1024]byte
	n, _ := unix.Read(fd, line[:])
	return string(line[:max(n, 0)])
}

// PathCall is a thread's wait for a path.
type PathCall struct {
	Thread
	ID         string
	Call, Path string
}

// pathCalls have a path as first or second argument.
var pathCalls = map[int]struct {
	name     string
	argument int
}{
	unix.SYS_OPENAT: {"openat", 2}, unix.SYS_MOUNT: {"mount", 2}, unix.SYS_UMOUNT2: {"umount2", 1},
	unix.SYS_UNLINKAT: {"unlinkat", 2},
}

// PathCalls lists such waits (CAP_SYS_PTRACE).
func PathCalls(pid int) (all []PathCall) {
	entries, _ := os.ReadDir(path(pid, "task"))
	for _, e := range entries {
		at := path(pid, "task/"+e.Name())
		fields := strings.Fields(lineAt(unix.AT_FDCWD, at+"/syscall"))
		if len(fields) < 3 {
			continue
		}
		number, err := strconv.Atoi(fields[0])
		call, is := pathCalls[number]
		if err != nil || !is {
			continue
		}
		t := threadAt(unix.AT_FDCWD, at)
		if t.State != "S" && t.State != "D" {
			continue
		}
		if from, err := strconv.ParseUint(fields[call.argument], 0, 64); err == nil {
			all = append(all, PathCall{t, e.Name(), call.name, textAt(pid, uintptr(from))})
		}
	}
	return all
}

func textAt(pid int, from uintptr) string {
	var data [256]byte
	local := []unix.Iovec{{Base: &data[0]}}
	local[0].SetLen(len(data))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: from, Len: len(data)}}, 0)
	if err != nil {
		return ""
	}
	text, _, _ := strings.Cut(string(data[:n]), "\x00")
	return text
}

// Killed reports a pending SIGKILL, or an exit.
func Killed(pid int) bool {
	const exiting, sigkill = 0x4, 1 << (uint(unix.SIGKILL) - 1) // PF_EXITING (include/linux/sched.h)
	var flags uint64
	if _, fields, err := readStat(pid); err == nil {
		flags, _ = strconv.ParseUint(fields[6], 10, 64)
	}
	status, _ := os.ReadFile(path(pid, "status"))
	pending := fieldIn(string(status), "SigPnd:", 16) | fieldIn(string(status), "ShdPnd:", 16)
	return flags&exiting != 0 || pending&sigkill != 0
}
