package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// A PID in a lock file names a process only in the PID namespace of who polls for it.
func TestALockFileOfAnotherPIDNamespaceNamesNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	harness.Check(t, os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600))
	if l := LockFile(os.Getpid(), path); l == nil || l.Maker == nil || int(l.Maker.PID) != os.Getpid() {
		t.Fatalf("of this process: %+v", l)
	}
	apart := exec.Command("sleep", "infinity")
	apart.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	harness.Check(t, apart.Start())
	defer func() {
		_ = apart.Process.Kill()
		_ = apart.Wait()
	}()
	if l := LockFile(apart.Process.Pid, path); l == nil || l.Maker != nil || l.Gone {
		t.Errorf("of another namespace: %+v", l)
	}
}

// Opening a device may have effects: /dev/watchdog restarts the node. A link is the lock itself, as for O_EXCL.
func TestAPolledDeviceIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	harness.Check(t, unix.Mkfifo(pipe, 0o600))
	harness.Check(t, os.Symlink(pipe, link))
	for _, path := range []string{pipe, link} {
		if harness.Opened(t, pipe, func() {
			if l := LockFile(os.Getpid(), path); l == nil || l.Written == 0 || l.Maker != nil {
				t.Errorf("%s: %+v", path, l)
			}
		}) {
			t.Errorf("%s was opened", path)
		}
	}
}
