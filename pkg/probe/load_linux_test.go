package probe

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

const withoutVariable = "CNISCOPE_TEST_WITHOUT"

// giveUp drops a capability of this thread, and the one that includes all of BPF's.
func giveUp(t *testing.T, capability uint) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	harness.Check(t, unix.Capget(&header, &have[0]))
	for _, c := range []uint{capability, unix.CAP_SYS_ADMIN} {
		have[c/32].Effective &^= 1 << (c % 32)
	}
	harness.Check(t, unix.Capset(&header, &have[0]))
}

// It runs in a process of its own, because the BPF library caches what the kernel allows.
func TestWhatCannotBeLoadedIsAnErrorWithARemedy(t *testing.T) {
	if capability, err := strconv.ParseUint(os.Getenv(withoutVariable), 10, 8); err == nil {
		giveUp(t, uint(capability))
		p, err := Open(Options{Ring: 1 << 16, Processes: 64, Log: slog.New(slog.DiscardHandler)})
		var no *UnsupportedError
		if p != nil || !errors.As(err, &no) || no.Remedy == "" {
			t.Errorf("%v, want an UnsupportedError", err)
		}
		return
	}
	harness.Root(t)
	for name, capability := range map[string]int{"CAP_BPF": unix.CAP_BPF, "CAP_PERFMON": unix.CAP_PERFMON} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), withoutVariable+"="+strconv.Itoa(capability))
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("without %s: %v\n%s", name, err, out)
		}
	}
}

func attachAct(source string) error {
	o, err := attach(Options{Source: source, Ring: 1 << 20, Processes: 100, Detail: DetailAuto, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		return errors.Join(errors.New("it observes"), o.close())
	}
	if _, is := errors.AsType[*UnsupportedError](err); !is {
		return fmt.Errorf("not to be recognized as a refusal: %w", err)
	}
	fmt.Print(err)
	return nil
}

func TestAnUnprivilegedContainerIsToldOfBothMeans(t *testing.T) {
	cmd := exec.Command(actCommand(t, "unprivileged")[0])
	cmd.Env = []string{"ARGUMENT=" + SourceAuto}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	harness.Says(t, string(said), "CAP_BPF", "process connector: the node's PID namespace", "hostPID")
}
