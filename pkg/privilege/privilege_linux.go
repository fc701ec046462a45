// Package privilege drops privileges that only the start needs.
package privilege

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

var kept = []cap.Value{
	cap.SYS_PTRACE,      // /proc/PID of other users
	cap.DAC_READ_SEARCH, // CNI directory and options of any owner
	cap.PERFMON,         // maps with kernel addresses
	cap.BPF,             // read BPF maps
}

// Network reports whether this process has CAP_NET_ADMIN.
func Network() bool {
	has, err := cap.GetProc().GetFlag(cap.Effective, cap.NET_ADMIN)
	return err == nil && has
}

// Drop drops all threads' capabilities but the needed ones, which it returns, and CAP_NET_ADMIN with network.
func Drop(network bool) (left string, err error) {
	if network { // to restart the process connector
		return keep(append(slices.Clip(kept), cap.NET_ADMIN))
	}
	return keep(kept)
}

// DropButNetwork drops all threads' capabilities but CAP_NET_ADMIN.
func DropButNetwork() error {
	_, err := keep([]cap.Value{cap.NET_ADMIN})
	return err
}

func keep(wanted []cap.Value) (left string, err error) {
	now := cap.GetProc()
	next := cap.NewSet()
	var names []string
	for _, c := range wanted {
		if has, err := now.GetFlag(cap.Permitted, c); err != nil || !has {
			continue
		}
		if err := errors.Join(next.SetFlag(cap.Permitted, true, c), next.SetFlag(cap.Effective, true, c)); err != nil {
			return "", fmt.Errorf("keeping %s: %w", c, err)
		}
		names = append(names, c.String())
	}
	if err := next.SetProc(); err != nil {
		return "", fmt.Errorf("dropping capabilities: %w", err)
	}
	return strings.Join(names, ","), nil
}

// Hide protects this process's memory, environment, files and /proc/PID/root from the user's other processes, until
// it executes a program.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot hide this process from others of its user: %w", err)
	}
	return nil
}
