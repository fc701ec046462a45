package firstconn

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// A pod with cgroups of its own names one as a runtime names another pod's, in which a process older than the other
// pod's fails to connect.
func TestCountersAreOfThePodsNamespace(t *testing.T) {
	harness.Root(t)
	group := filepath.Join(harness.Unified(t), strings.Repeat("5b", 32))
	harness.Check(t, os.Mkdir(group, 0o755))
	t.Cleanup(func() { _ = os.Remove(group) })
	forger, victim, quiet := isolated(t), isolated(t), isolated(t)
	for _, pid := range []int{forger, victim} {
		harness.Check(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, pid), 0))
	}
	for range 3 {
		connect(t, forger)
	}
	connect(t, victim)
	in := func(key string, pid int) event.Namespace {
		return event.Namespace{Key: key, Label: fmt.Sprint(harness.Must(procfs.Namespace(pid, "net"))(t))}
	}
	wanted := []event.Namespace{in("7", victim), in("8", quiet), {Key: "9", Label: "1"}, {Key: "10"}}
	harness.DeepEqual(t, Tries(&procfs.Residents{}, wanted), map[event.Namespace]*event.Tries{wanted[0]: {Unroutable: 1}, wanted[1]: {}})
}

// isolated starts a process in a network namespace of its own, as the runtime does for a sandbox.
func isolated(t *testing.T) int {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	harness.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// connect fails for want of a route.
func connect(t *testing.T, pid int) {
	harness.Check(t, harness.Within(fmt.Sprintf("/proc/%d/ns/net", pid), func() error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		if err := unix.Connect(s, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 1}}); !errors.Is(err, unix.ENETUNREACH) {
			return fmt.Errorf("connect: %w", err)
		}
		return nil
	}))
}
