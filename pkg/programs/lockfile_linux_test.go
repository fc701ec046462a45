package programs

import (
	"errors"
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
	harness.Start(t, apart)
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

// Any user may write a PID into a file in /tmp.
func TestALockFileThatOthersMayWriteNamesNobody(t *testing.T) {
	harness.Root(t)
	path := filepath.Join(t.TempDir(), "lock")
	for name, test := range map[string]struct {
		owner int
		mode  os.FileMode
		pid   int
		names bool
	}{
		"of root":                            {0, 0o644, os.Getpid(), true},
		"of a user, with root's process":     {65534, 0o644, os.Getpid(), false},
		"of a user, with no process":         {65534, 0o644, 1<<22 - 1, false},
		"of root, with no process":           {0, 0o644, 1<<22 - 1, true},
		"of root, that its group may write":  {0, 0o664, os.Getpid(), false},
		"of root, that everybody may change": {0, 0o606, os.Getpid(), false},
	} {
		harness.Check(t, errors.Join(os.WriteFile(path, []byte(strconv.Itoa(test.pid)), 0o600), os.Chown(path, test.owner, 0), os.Chmod(path, test.mode)))
		if l := LockFile(os.Getpid(), path); l == nil || (l.Maker != nil) != test.names {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
