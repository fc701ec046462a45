package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Lock is a line of /proc/locks.
type Lock struct {
	Kind  string
	PID   int
	File  string // hex device, decimal inode (fs/locks.c): "00:2f:1234"
	Waits bool
}

// Locks lists file locks, each before its waiters, from up to most bytes (about 50 per lock): the kernel's time grows
// with the square of their number, and any user can hold thousands. With ErrCut some are missing.
func Locks(most int64) ([]Lock, error) {
	table, err := readMost("/proc/locks", most)
	if errors.Is(err, ErrCut) {
		table = table[:bytes.LastIndexByte(table, '\n')+1]
	}
	return parseLocks(string(table)), err
}

func parseLocks(table string) (all []Lock) {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		waits := len(fields) > 1 && fields[1] == "->"
		if waits {
			fields = slices.Delete(fields, 1, 2)
		}
		if len(fields) < 6 {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil {
			all = append(all, Lock{Kind: fields[1], PID: pid, File: fields[5], Waits: waits})
		}
	}
	return all
}

const maxDescriptors = 1 << 20

// Descriptors calls each with entries of /proc/PID/fd until that returns false. Other users' need CAP_SYS_PTRACE.
func Descriptors(pid int, each func(fd int, target string) bool) error {
	dir, err := open(path(pid, "fd"))
	if err != nil {
		return err
	}
	defer dir.Close()
	target := make([]byte, unix.PathMax)
	for seen := 0; seen < maxDescriptors; {
		names, err := dir.Readdirnames(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		seen += len(names)
		for _, name := range names {
			fd, err := strconv.Atoi(name)
			n, err2 := unix.Readlinkat(int(dir.Fd()), name, target)
			if err == nil && err2 == nil && !each(fd, string(target[:n])) {
				return nil
			}
		}
	}
	return fmt.Errorf("process %d has more than %d descriptors", pid, maxDescriptors)
}

// SocketIn returns the inode in a descriptor's target "socket:[1234]"; else 0.
func SocketIn(target string) (inode uint64) {
	if number, is := strings.CutPrefix(target, "socket:["); is {
		inode, _ = strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	}
	return inode
}

// Groups returns the text of /proc/PID/cgroup, in which runtimes name the container. It is far cheaper than CgroupOf.
// Users with cgroups of their own may forge it.
func Groups(pid int) string {
	text, _ := readMost(path(pid, "cgroup"), 64<<10)
	return string(text)
}

// netMax: netstat has 4 KB; a pod's 300,000 neighbors cost minutes.
const netMax = 128 << 10

// Net returns the beginning of /proc/PID/net/TABLE.
func Net(pid int, table string) string {
	text, _ := readMost(path(pid, "net/"+table), netMax)
	return string(text)
}

// Started returns a process's start, to a Tick, by the current wall clock.
func Started(pid int) (time.Time, error) {
	s, err := StatOf(pid)
	if err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(s.Start - clock.Boot())), nil
}

// OpenRegular opens a regular file for reading. O_PATH comes first, so that no device notices and no pipe blocks.
func OpenRegular(name string, flags int) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	return open("/proc/self/fd/" + strconv.Itoa(fd))
}
