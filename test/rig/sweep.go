//go:build linux

package rig

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweep removes everything that a place made, whoever is left of it: processes
// first, then what they held, the folder last. Its parts go on when one fails.
func sweep(dir string, log *slog.Logger) error {
	errs := []error{killAll(dir, log)}
	kubelets, err := kubeletCgroups(dir)
	errs = append(errs, err, unmountAll(dir))
	if m := placeName.FindStringSubmatch(filepath.Base(dir)); kind(m[1]) == rigKind {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return fmt.Errorf("sweep %s: %w", dir, err)
		}
		errs = append(errs, removeLinks(n), removeRules(subnets(n)), removeCgroups(cgroupName(dir)))
		for _, name := range kubelets {
			errs = append(errs, removeCgroups(name))
		}
	}
	mounts, err := mountsBelow(dir)
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%d mounts are left", len(mounts))
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}

// patience is for what the kernel does in its own time: on a machine with more to do than it can that takes
// seconds, and only what never happens takes so long.
const patience = time.Minute

// patiently asks until done, and returns the last error.
func patiently(ask func() (done bool, err error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if done, err := ask(); done || time.Now().After(deadline) {
			return err
		}
	}
}

// killAll ends the processes of a place and waits until the last is gone. One that is in the middle of an exec
// has no environment to be known by, so it is looked twice.
func killAll(dir string, log *slog.Logger) error {
	none := 0
	return patiently(func() (done bool, err error) {
		procs, err := processesOf(dir)
		if err != nil {
			return true, err
		}
		if len(procs) == 0 {
			none++
			return none == 2, nil
		}
		none = 0
		for _, p := range procs {
			log.Debug("killing", "pid", p.PID, "name", p.Name)
			if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return true, fmt.Errorf("kill %v: %w", p, err)
			}
		}
		return false, fmt.Errorf("processes that do not end: %v", procs)
	})
}

// mountsBelow lists the mounts at or below dir, innermost last.
func mountsBelow(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && (fields[4] == dir || strings.HasPrefix(fields[4], dir+"/")) {
			found = append(found, fields[4])
		}
	}
	return found, nil
}

func unmountAll(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	slices.Reverse(mounts)
	for _, m := range mounts {
		// An unmount reaches peers: it may be gone by the time it is its turn.
		if err := unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	return nil
}

func removeLinks(n int) error {
	bridges, err := filepath.Glob("/sys/class/net/" + bridgeName(n, "*"))
	if err != nil {
		return err
	}
	for _, bridge := range bridges {
		ports, err := os.ReadDir(filepath.Join(bridge, "brif"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("list the ports of a bridge: %w", err)
		}
		for _, port := range ports {
			if err := deleteLink(port.Name()); err != nil {
				return err
			}
		}
		if err := deleteLink(filepath.Base(bridge)); err != nil {
			return err
		}
	}
	return nil
}

// deleteLink treats a link that is gone as deleted: a veth goes by itself soon
// after its pod's namespace.
func deleteLink(name string) error {
	out, err := exec.Command("ip", "link", "delete", name).CombinedOutput()
	if err != nil {
		if _, statErr := os.Stat("/sys/class/net/" + name); errors.Is(statErr, os.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("delete link %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
