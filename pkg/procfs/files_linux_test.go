package procfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestLinesOfTheLockTable(t *testing.T) {
	const table = `1: POSIX  ADVISORY  WRITE 101 00:2f:7 0 EOF
2: FLOCK  ADVISORY  WRITE 708 08:01:1234 0 EOF
2: -> FLOCK  ADVISORY  WRITE 709 08:01:1234 0 EOF
3: LEASE  ACTIVE    READ 5 08:01:1234
4: junk
5: FLOCK  ADVISORY  WRITE x 08:01:1234 0 EOF
`
	want := []Lock{{"POSIX", 101, "00:2f:7", false}, {"FLOCK", 708, "08:01:1234", false}, {"FLOCK", 709, "08:01:1234", true}, {"LEASE", 5, "08:01:1234", false}}
	harness.EqualSlices(t, parseLocks(table), want)
}

func TestAnOpenFileAndItsLockAreListed(t *testing.T) {
	file := harness.Must(os.Create(filepath.Join(t.TempDir(), "lock")))(t)
	defer file.Close()
	harness.Check(t, unix.Flock(int(file.Fd()), unix.LOCK_EX))
	fds := map[int]string{}
	harness.Check(t, Descriptors(os.Getpid(), func(fd int, target string) bool { fds[fd] = target; return true }))
	harness.Equal(t, fds[int(file.Fd())], file.Name(), "descriptor", file.Fd(), "leads to")
	calls := 0
	if err := Descriptors(os.Getpid(), func(int, string) bool { calls++; return false }); err != nil || calls != 1 {
		t.Errorf("%d calls after the first said to stop: %v", calls, err)
	}
	if err := Descriptors(1<<30, nil); !Gone(err) {
		t.Error(err)
	}
	var s unix.Stat_t
	harness.Check(t, unix.Fstat(int(file.Fd()), &s))
	locks, err := Locks(1 << 20)
	ours := Lock{"FLOCK", os.Getpid(), fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino), false}
	if err != nil || !slices.Contains(locks, ours) {
		t.Errorf("%+v is not among %+v: %v", ours, locks, err)
	}
}

// Before: everything was read, up to once in 100 ms: 27,000 locks of any user took 0.4 s of a CPU.
func TestTheLockTableIsReadToABound(t *testing.T) {
	file := harness.Must(os.Create(filepath.Join(t.TempDir(), "locks")))(t)
	defer file.Close()
	for i := range int64(100) {
		harness.Check(t, unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 2 * i, Len: 1}))
	}
	locks, err := Locks(1000)
	if !errors.Is(err, ErrCut) || len(locks) == 0 || len(locks) > 30 {
		t.Errorf("%d locks in 1000 bytes: %v", len(locks), err)
	}
}

func TestTheTextOfCgroupsIsRead(t *testing.T) {
	if groups := Groups(os.Getpid()); !strings.Contains(groups, ":/") || Groups(1<<30) != "" {
		t.Errorf("%q", groups)
	}
}

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
