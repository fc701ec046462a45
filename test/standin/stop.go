//go:build linux

package standin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/tied"
)

// Stop stops a process: by a signal ("stop"), gdb ("trace"), or the cgroup freezer of version 2 ("freeze") or 1
// ("freeze v1"). It returns once the process is stopped. The function continues it.
func Stop(kind string, pid int) (goOn func() error, err error) {
	switch kind {
	case "stop":
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return nil, err
		}
		return func() error { return unix.Kill(pid, unix.SIGCONT) }, untilIn(pid, "T")
	case "trace":
		return trace(pid)
	case "freeze":
		top := "/sys/fs/cgroup/unified"
		if _, err := os.Stat(top + "/cgroup.procs"); err != nil {
			top = "/sys/fs/cgroup"
		}
		return freeze(pid, freezer{top, "0::", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"})
	case "freeze v1":
		return freeze(pid, freezer{"/sys/fs/cgroup/freezer", ":freezer:", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"})
	}
	return nil, fmt.Errorf("nothing stops a process by %q", kind)
}

func (n *Node) suspend(in Injection) (func() error, error) { return Stop(in.Kind, n.PID(in.Of)) }

// trace attaches gdb, which exits when its input ends.
func trace(pid int) (func() error, error) {
	gdb := exec.Command("gdb", "-q", "-nx", "-batch", "-iex", "set auto-load off", "-p", strconv.Itoa(pid), "-ex", "shell read x")
	in, err := gdb.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := tied.Start(gdb); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(in.Close(), gdb.Wait()) }, untilIn(pid, "t")
}

// untilIn waits until all threads of a process are in a state. A debugger attaches to them one after the other.
func untilIn(pid int, state string) error {
	return until(fmt.Sprintf("all threads of process %d are in state %s", pid, state), func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, thread := range threads {
			if stateIn(thread) != state {
				return false
			}
		}
		return len(threads) > 0
	})
}

// stateIn returns the state letter (proc(5)) in a stat file; empty if it is gone.
func stateIn(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// freezer describes a cgroup version: root, line prefix in /proc/N/cgroup, and the files and values for freezing.
type freezer struct{ top, line, file, freeze, thaw, told, frozen string }

func freeze(pid int, f freezer) (func() error, error) {
	own, err := cgroupOf(pid, f.line)
	if err != nil {
		return nil, err
	}
	above := filepath.Join(f.top, own)
	group, err := os.MkdirTemp(above, groupPattern)
	if err != nil {
		return nil, err
	}
	back := func() error { return errors.Join(put(filepath.Join(group, f.file), f.thaw), leave(group, above)) }
	if err := errors.Join(put(group+"/cgroup.procs", strconv.Itoa(pid)), put(filepath.Join(group, f.file), f.freeze)); err != nil {
		return nil, errors.Join(err, back())
	}
	return back, until(fmt.Sprintf("process %d is frozen", pid), func() bool {
		text, _ := os.ReadFile(filepath.Join(group, f.told))
		return strings.Contains(string(text), f.frozen)
	})
}

// groupPattern names cgroups uniquely, since PIDs recur in namespaces and killed tests leave groups.
const groupPattern = "cniscope-standin-"

func put(file, value string) error { return os.WriteFile(file, []byte(value), 0o600) }

// cgroupOf returns a process's cgroup path by the prefix of its line in /proc/N/cgroup.
func cgroupOf(pid int, before string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if _, path, is := strings.Cut(strings.TrimSpace(line), before); is {
			return path, nil
		}
	}
	return "", fmt.Errorf("no cgroup %s", before)
}
