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

// cgroupName is the parent of a rig's pods in every cgroup hierarchy.
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
		// cpu and cpuacct may be one hierarchy by two names: gone is fine. A process that ends gives its
		// memory back before it leaves its cgroup: it is nobody's in /proc, and here still (EBUSY).
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

// kubeletParent is where containerd puts containers that did not ask for a cgroup, as a
// kubelet without cgroups of its own does not: below its namespace.
const kubeletParent = "k8s.io"

// kubeletParents are its folders in every hierarchy.
func kubeletParents() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil { // version 2
		return []string{"/sys/fs/cgroup/" + kubeletParent}
	}
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // the pattern is a good one
	for i, top := range tops {
		tops[i] = filepath.Join(filepath.Dir(top), kubeletParent)
	}
	return tops
}

// kubeletCgroups are those of such containers. Their names are the containers' ids, and
// so are those of their folders in containerd's state.
func kubeletCgroups(dir string) ([]string, error) {
	// They run with what is at its usual places.
	tasks, err := filepath.Glob(filepath.Join(paths{dir}.at("cover", "containerd"), "io.containerd.runtime.v2.task", "k8s.io", "*"))
	if err != nil {
		return nil, err
	}
	for i, task := range tasks {
		tasks[i] = filepath.Join(kubeletParent, filepath.Base(task))
	}
	return tasks, nil
}
