package procfs

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// init is the program of a process whose first thread ends and whose others do not: it runs on the first thread.
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
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, zombie.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !Ended(zombie.Process.Pid) {
		t.Error("a zombie has not ended")
	}
	_ = zombie.Wait()

	going := exec.Command("/proc/self/exe")
	going.Env = append(os.Environ(), "CNISCOPE_TEST_FIRST_THREAD_ENDS=1")
	if err := going.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = going.Process.Kill(); _ = going.Wait() }()
	for {
		s, err := StatOf(going.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if s.Zombie() {
			break
		}
	}
	if Ended(going.Process.Pid) {
		t.Error("a process whose first thread alone has ended has ended")
	}
}
