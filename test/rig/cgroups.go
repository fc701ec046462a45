//go:build linux

package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

func cgroupName(dir string) string { return "cniscope-" + filepath.Base(dir) }

func removeCgroups(name string) error {
	var groups []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		tops, err := filepath.Glob(pattern + name)
		if err != nil {
			return err
		}
		for _, top := range tops {
			err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					groups = append(groups, path)
				}
				return err
			})
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("list cgroups: %w", err)
			}
		}
	}
	slices.Reverse(groups)
	for _, group := range groups {
		// cpu and cpuacct may be one hierarchy, so it may be gone. An exiting process keeps it busy
		// (EBUSY).
		err := patiently(func() (bool, error) {
			err := unix.Rmdir(group)
			return !errors.Is(err, unix.EBUSY), err
		})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove cgroup %s: %w", group, err)
		}
	}
	return nil
}

// kubeletParent is containerd's cgroup for containers that requested none.
const kubeletParent = "k8s.io"

func kubeletParents() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil { // version 2
		return []string{"/sys/fs/cgroup/" + kubeletParent}
	}
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // the pattern is valid
	for i, top := range tops {
		tops[i] = filepath.Join(filepath.Dir(top), kubeletParent)
	}
	return tops
}

func kubeletCgroups(dir string) ([]string, error) {
	// containerd's default paths.
	tasks, err := filepath.Glob(filepath.Join(paths{dir}.at("cover", "containerd"), "io.containerd.runtime.v2.task", "k8s.io", "*"))
	if err != nil {
		return nil, err
	}
	for i, task := range tasks {
		tasks[i] = filepath.Join(kubeletParent, filepath.Base(task))
	}
	return tasks, nil
}
