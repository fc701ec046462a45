package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheSecondIsToldWhoHoldsTheNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	release, err := Take(dir, "by hand")
	harness.Check(t, err)
	_, err = Take(dir, "by hand")
	var held *HeldError
	if !errors.As(err, &held) || !strings.HasPrefix(held.Holder, fmt.Sprintf("pid %d, by hand, since ", os.Getpid())) {
		t.Fatalf("the second lock: %v", err)
	}
	release()
	release, err = Take(dir, "by hand")
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	release()
}

func TestTheSecondWaitsForTheFirstToEnd(t *testing.T) {
	dir := t.TempDir()
	release := harness.Must(Take(dir, "by hand"))(t)
	var held *HeldError
	impatient, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := Wait(impatient, dir, "by hand", time.Millisecond); !errors.As(err, &held) {
		t.Fatalf("its patience is over: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, release)
	release = harness.Must(Wait(t.Context(), dir, "by hand", time.Millisecond))(t)
	release()
}

func TestALockIsNotTakenThroughALink(t *testing.T) {
	dir := t.TempDir()
	harness.Check(t, os.Symlink("/etc/passwd", filepath.Join(dir, nodeLock)))
	if _, err := Take(dir, "by hand"); err == nil {
		t.Fatal("the lock followed a symbolic link")
	}
}

func openUp(dir string) {
	for at := dir; at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
}

// A uid that is neither ours nor root's.
const nobody = 65534

// hold locks dir in another process, as uid, until the test ends, and returns its output.
func hold(t *testing.T, uid uint32, dir string) (got string) {
	t.Helper()
	harness.Root(t)
	program := filepath.Join(t.TempDir(), "holder") // executable for others
	self := harness.Must(os.ReadFile("/proc/self/exe"))(t)
	openUp(filepath.Dir(program))
	harness.Check(t, os.WriteFile(program, self, 0o755))
	cmd := exec.Command(program)
	cmd.Env = []string{"CNISCOPE_TEST_HOLD=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out := harness.Must(cmd.StdoutPipe())(t)
	in := harness.Must(cmd.StdinPipe())(t)
	harness.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	got = harness.Must(bufio.NewReader(out).ReadString('\n'))(t)
	return strings.TrimSpace(got)
}

func TestMain(m *testing.M) {
	dir := os.Getenv("CNISCOPE_TEST_HOLD")
	if dir == "" {
		os.Exit(m.Run())
	}
	for _, name := range []string{".", nodeLock} {
		if f, err := os.Open(filepath.Join(dir, name)); err == nil &&
			unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			fmt.Print(name, " ")
		}
	}
	fmt.Println()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestNobodyElseCanTakeTheLock(t *testing.T) {
	dir := t.TempDir()
	openUp(dir)
	release, err := Take(dir, "by hand")
	harness.Check(t, err)
	if got := hold(t, nobody, dir); strings.Contains(got, nodeLock) {
		t.Errorf("another user locked %s", got)
	}
	release()
	release, err = Take(dir, "by hand")
	if err != nil {
		t.Fatalf("while another user has what it could get: %v", err)
	}
	release()
}

func TestALockThatOthersCouldHaveIsRefused(t *testing.T) {
	dir := t.TempDir()
	harness.Check(t, os.WriteFile(filepath.Join(dir, nodeLock), nil, 0o644))
	if _, err := Take(dir, "by hand"); err == nil || !strings.Contains(err.Error(), "may be opened by others") ||
		!strings.Contains(err.Error(), "remove it") {
		t.Errorf("a file of everybody's: %v", err)
	}
	open := filepath.Join(dir, "open")
	harness.Check(t, errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)))
	if _, err := Take(open, "by hand"); err == nil || !strings.Contains(err.Error(), "may be written to by others") ||
		!strings.Contains(err.Error(), "state.dir") {
		t.Errorf("a folder of everybody's: %v", err)
	}
}

func TestOnlyOneHasIt(t *testing.T) {
	dir := t.TempDir()
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for taken := 0; taken < 50; {
				release, err := Take(dir, "by hand")
				if held := (*HeldError)(nil); errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken++
				harness.Equal(t, holders.Add(1), 1)
				holders.Add(-1)
				release()
			}
		})
	}
	all.Wait()
}

func TestTheRemedyForADirectoryThatCannotBeOpened(t *testing.T) {
	_, err := Take("/proc/none", "by hand")
	if os.Geteuid() == 0 {
		harness.Says(t, fmt.Sprint(err), "cannot open the run directory: ", "; set state.dir")
		return
	}
	_, err = Take("/var/none", "by hand")
	harness.Says(t, fmt.Sprint(err), "cannot open the run directory: mkdir /var/none: permission denied; run as root")
}
