package procfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhenANamespaceWasOpened(t *testing.T) {
	written := func(name string) time.Time {
		file := filepath.Join(t.TempDir(), name)
		harness.Check(t, os.WriteFile(file, nil, 0o600))
		return harness.Must(os.Stat(file))(t).ModTime()
	}
	child := exec.Command("cat")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	end := harness.Must(child.StdinPipe())(t)
	before := written("before")
	if os.Getuid() != 0 {
		t.Skip("makes a network namespace")
	}
	harness.Check(t, child.Start())
	file := harness.Must(os.Open(path(child.Process.Pid, "ns/net")))(t)
	after := written("after")
	at := harness.Must(Opened(child.Process.Pid, "net"))(t)
	if at.Before(before) || at.After(after) {
		t.Errorf("opened at %s, not between %s and %s", at, before, after)
	}
	harness.Equal(t, harness.Must(Opened(child.Process.Pid, "net"))(t), at, "later")
	harness.Check(t, errors.Join(file.Close(), end.Close(), child.Wait()))
	if _, err := Opened(child.Process.Pid, "net"); err == nil {
		t.Error("of a process that has exited")
	}
}
