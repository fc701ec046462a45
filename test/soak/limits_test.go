//go:build linux

package soak

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroups = "/sys/fs/cgroup"

// A group is a cgroup of either version that limits one process.
type group struct {
	path, before string // current and previous path
}

type limit struct {
	controller string
	v1, v2     [2]string // file and value
}

var (
	// starved leaves 2 % of a CPU.
	starved = limit{"cpu", [2]string{"cpu.cfs_quota_us", "2000"}, [2]string{"cpu.max", "2000 100000"}}
	// noMemory leaves little more than the current memory.
	noMemory = limit{"memory", [2]string{"memory.limit_in_bytes", "1048576"}, [2]string{"memory.max", "1048576"}}
	// noThreads prevents new processes and threads.
	noThreads = limit{"pids", [2]string{"pids.max", "1"}, [2]string{"pids.max", "1"}}
)

// confine moves a process into a limited group. The error is errors.ErrUnsupported without a usable controller.
func confine(l limit, pid int) (*group, error) {
	g := &group{}
	file := l.v1
	name := fmt.Sprintf("cniscope-soak-%s-%d", l.controller, os.Getpid())
	was, err := groupOf(pid, l.controller)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cgroups, l.controller)
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		root, file = cgroups, l.v2
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+l.controller), 0); err != nil {
			return nil, unsupported("have the controller "+l.controller, err)
		}
	}
	g.path, g.before = filepath.Join(root, name), filepath.Join(root, was)
	if err := os.Mkdir(g.path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, unsupported("make a control group", err)
	}
	if err := os.WriteFile(filepath.Join(g.path, file[0]), []byte(file[1]), 0); err != nil {
		return nil, errors.Join(unsupported("limit a control group", err), g.free())
	}
	if err := enter(g.path, pid); err != nil {
		return nil, errors.Join(unsupported("use a control group", err), g.free())
	}
	return g, nil
}

func unsupported(what string, err error) error {
	return fmt.Errorf("%s: %w: %w", what, errors.ErrUnsupported, err)
}

func groupOf(pid int, controller string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	unified := "/"
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[1] == "":
			unified = parts[2]
		case slices.Contains(strings.Split(parts[1], ","), controller):
			return parts[2], nil
		}
	}
	return unified, nil
}

func enter(path string, pid int) error {
	err := os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	if err != nil && !errors.Is(err, unix.ESRCH) { // it exited
		return fmt.Errorf("move process %d into %s: %w", pid, path, err)
	}
	return nil
}

// free moves the processes back and removes the group, which exiting ones keep busy briefly.
func (g *group) free() error {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
		for _, pid := range strings.Fields(string(text)) {
			n, convErr := strconv.Atoi(pid)
			err = errors.Join(err, convErr)
			if n > 0 {
				err = errors.Join(err, enter(g.before, n))
			}
		}
		if err == nil {
			err = unix.Rmdir(g.path)
		}
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("remove control group %s: %w", g.path, err)
		}
	}
}

// disconnect shuts down a process's connections to a unix socket and returns their number.
func disconnect(pid int, socket string) (n int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		number, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PidfdGetfd(process, number, 0)
		if errors.Is(err, unix.EBADF) {
			continue // closed since
		}
		if err != nil {
			return n, unsupported(fmt.Sprintf("take a descriptor of process %d", pid), err)
		}
		if peer, err := unix.Getpeername(fd); err == nil {
			if at, is := peer.(*unix.SockaddrUnix); is && at.Name == socket {
				n++
				err = unix.Shutdown(fd, unix.SHUT_RDWR)
			}
			if err != nil {
				_ = unix.Close(fd)
				return n, fmt.Errorf("shut down a connection: %w", err)
			}
		}
		_ = unix.Close(fd)
	}
	return n, nil
}
