//go:build linux

package rig

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sweep removes everything of a place: processes, their resources, the directory. It continues after errors.
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

// patience bounds waits for the kernel, which last seconds on an overloaded machine.
const patience = time.Minute

func patiently(ask func() (done bool, err error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if done, err := ask(); done || time.Now().After(deadline) {
			return err
		}
	}
}

// killAll checks twice, because a process during exec has no environment.
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
		// An unmount propagates, so later ones may be gone.
		if err := unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	return nil
}

func removeLinks(n int) error {
	bridges, ports, err := linksOf(n)
	var errs []error
	for _, link := range append(ports, bridges...) {
		errs = append(errs, deleteLink(link))
	}
	return errors.Join(append(errs, err)...)
}

// linksOf queries the kernel, because /sys shows another network namespace's links.
func linksOf(n int) (bridges, ports []netlink.Link, err error) {
	var all []netlink.Link
	err = patiently(func() (bool, error) {
		all, err = netlink.LinkList()
		return !errors.Is(err, netlink.ErrDumpInterrupted), err // concurrent changes
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the links: %w", err)
	}
	ours := map[int]bool{}
	for _, l := range all {
		if strings.HasPrefix(l.Attrs().Name, bridgeName(n, "")) {
			bridges = append(bridges, l)
			ours[l.Attrs().Index] = true
		}
	}
	for _, l := range all {
		if ours[l.Attrs().MasterIndex] {
			ports = append(ports, l)
		}
	}
	return bridges, ports, nil
}

// deleteLink ignores a missing link: a veth disappears soon after its pod's namespace.
func deleteLink(link netlink.Link) error {
	err := netlink.LinkDel(link)
	if err == nil {
		return nil
	}
	if _, still := netlink.LinkByIndex(link.Attrs().Index); errors.As(still, &netlink.LinkNotFoundError{}) {
		return nil
	}
	return fmt.Errorf("delete link %s: %w", link.Attrs().Name, err)
}
