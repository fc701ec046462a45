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
	Kind  string // "FLOCK", "POSIX", "OFDLCK", "LEASE"…
	PID   int
	File  string // device in hex and inode in decimal (fs/locks.c): "00:2f:1234"
	Waits bool
}

// Locks lists file locks, each followed by its waiters. It reads up to most bytes of about 50 for each, since the
// kernel's time grows with their square; with ErrCut some locks are missing. Every user can have thousands.
func Locks(most int64) ([]Lock, error) {
	table, err := readMost("/proc/locks", most)
	if errors.Is(err, ErrCut) {
		table = table[:bytes.LastIndexByte(table, '\n')+1]
	}
	return parseLocks(string(table)), err
}

// parseLocks reads lines such as
//
//	1: FLOCK  ADVISORY  WRITE 708 00:2f:1234 0 EOF
//	1: -> FLOCK  ADVISORY  WRITE 709 00:2f:1234 0 EOF
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

// maxDescriptors is fs.nr_open's default.
const maxDescriptors = 1 << 20

// Descriptors calls each with a process's descriptors and their targets in /proc/PID/fd, until it returns false.
// Another user's process requires CAP_SYS_PTRACE.
func Descriptors(pid int, each func(fd int, target string) bool) error {
	dir, err := os.Open(path(pid, "fd"))
	if err != nil {
		return err
	}
	defer dir.Close()
	target := make([]byte, unix.PathMax)
	for seen := 0; seen < maxDescriptors; {
		names, err := dir.Readdirnames(1024)
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

// Groups returns the text of a process's cgroups, in which every runtime names the container. It costs a hundredth of
// CgroupOf, which parses our mounts; a user with cgroups of their own may name one after any container.
func Groups(pid int) string {
	text, _ := readMost(path(pid, "cgroup"), 64<<10)
	return string(text)
}

// Started returns a process's start, to a Tick, by the wall clock's current setting.
func Started(pid int) (time.Time, error) {
	s, err := StatOf(pid)
	if err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(s.Start - clock.Boot())), nil
}
