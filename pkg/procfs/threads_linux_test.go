package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// init runs on the first thread: it makes a process whose first thread ends before others.
func init() {
	if os.Getenv("CNISCOPE_TEST_FIRST_THREAD_ENDS") == "" {
		return
	}
	go func() {
		for os.Getppid() != 1 {
			time.Sleep(time.Millisecond)
		}
		os.Exit(0)
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

func TestAProcessHasEndedWithItsLastThread(t *testing.T) {
	if Ended(os.Getpid()) {
		t.Error("this process has ended")
	}
	if !Ended(1 << 22) {
		t.Error("a process that never was has not ended")
	}
	zombie := exec.Command("true")
	harness.Check(t, zombie.Start())
	harness.Check(t, unix.Waitid(unix.P_PID, zombie.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	if !Ended(zombie.Process.Pid) {
		t.Error("a zombie has not ended")
	}
	_ = zombie.Wait()

	going := exec.Command("/proc/self/exe")
	going.Env = append(os.Environ(), "CNISCOPE_TEST_FIRST_THREAD_ENDS=1")
	harness.Start(t, going)
	for {
		s := harness.Must(StatOf(going.Process.Pid))(t)
		if s.Zombie() {
			break
		}
	}
	if Ended(going.Process.Pid) {
		t.Error("a process whose first thread alone has ended has ended")
	}
}

// A thread that waits in a system call names the call and its path.
func TestAThreadThatWaitsForAPathIsListed(t *testing.T) {
	harness.Root(t)
	fifo := filepath.Join(t.TempDir(), "netns", "cni-1")
	harness.Check(t, os.Mkdir(filepath.Dir(fifo), 0o755))
	harness.Check(t, unix.Mkfifo(fifo, 0o600))
	opened := make(chan error, 1)
	go func() {
		fd, err := unix.Open(fifo, unix.O_RDONLY, 0) // waits for a writer
		_ = unix.Close(fd)
		opened <- err
	}()
	harness.Until(t, "the thread is listed", func() bool {
		for _, c := range PathCalls(os.Getpid()) {
			if c.Path == fifo && c.Call == "openat" {
				return true
			}
		}
		return false
	})
	fd := harness.Must(unix.Open(fifo, unix.O_WRONLY, 0))(t)
	harness.Check(t, unix.Close(fd))
	harness.Check(t, <-opened)
	harness.Equal(t, Killed(os.Getpid()), false, "killed")
}
