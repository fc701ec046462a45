package probe

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func attachAct(source string) error {
	o, err := attach(Options{Source: source, Ring: 1 << 20, Processes: 100, Detail: DetailAuto, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		return errors.Join(errors.New("it observes"), o.close())
	}
	if _, is := errors.AsType[*UnsupportedError](err); !is {
		return fmt.Errorf("not to be recognised as a refusal: %w", err)
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
