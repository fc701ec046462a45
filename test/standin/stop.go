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

// Stop has a process stand still: by a signal ("stop"), by gdb ("trace"), or by the freezer of a cgroup, of version 2
// ("freeze") or 1 ("freeze v1"). It returns once it does. The function has it go on.
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

// suspend stops a program, and returns once it stands still.
func (n *Node) suspend(in Injection) (func() error, error) { return Stop(in.Kind, n.PID(in.Of)) }

// trace attaches gdb, which goes away when its input ends.
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

// untilIn waits until all threads of a process are in a state. A debugger attaches to one after the other, and the
// process goes on in those that are left.
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

// stateIn is the state of a process or thread, a letter (proc(5)), in its stat file; empty if it is gone.
func stateIn(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// freezer is how a version of cgroups freezes: where its root is, what a process's line in /proc/N/cgroup has before the
// path, what is written where, and what is then read where.
type freezer struct{ top, line, file, freeze, thaw, told, frozen string }

// freeze freezes a process in a cgroup of its own.
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

// groupPattern names cgroups: numbers of processes come again in another PID namespace, and a test that
// was killed leaves its own.
const groupPattern = "cniscope-standin-"

// put writes to a file of a cgroup.
func put(file, value string) error { return os.WriteFile(file, []byte(value), 0o600) }

// cgroupOf is the path of a process's cgroup, by what its line in /proc/N/cgroup has before that.
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
