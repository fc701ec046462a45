//go:build linux

package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is one process of a rig.
type Process struct {
	PID  int
	Name string
}

func (p Process) String() string { return fmt.Sprintf("%s (%d)", p.Name, p.PID) }

// processesOf finds a place's processes by marker, executable, cgroup or root file system. The
// caller is never included.
func processesOf(dir string) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var found []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !belongs(pid, dir) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		found = append(found, Process{PID: pid, Name: strings.TrimSpace(string(name))})
	}
	return found, nil
}

// belongs is false for an exited process.
func belongs(pid int, dir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if exe, err := os.Readlink(filepath.Join(proc, "exe")); err != nil {
		return false // exited, a zombie, or a kernel thread
	} else if strings.HasPrefix(exe, dir+"/") {
		return true
	}
	env, _ := os.ReadFile(filepath.Join(proc, "environ"))
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == marker+"="+dir {
			return true
		}
	}
	groups, _ := os.ReadFile(filepath.Join(proc, "cgroup"))
	if bytes.Contains(groups, []byte("/"+cgroupName(dir)+"/")) {
		return true
	}
	mounts, _ := os.ReadFile(filepath.Join(proc, "mountinfo"))
	return rootedBelow(mounts, dir)
}

// rootedBelow reports whether the root mount is an overlay below dir.
func rootedBelow(mountinfo []byte, dir string) bool {
	for line := range bytes.Lines(mountinfo) {
		if f := bytes.Fields(line); len(f) > 4 && string(f[4]) == "/" {
			return bytes.Contains(line, []byte("upperdir="+dir+"/"))
		}
	}
	return false
}
