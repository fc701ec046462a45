package probe

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

func init() { acts["replace"] = replace }

// replace replaces the program some times, from a thread that is not the first, and then awaits the input's end.
func replace(times string) error {
	n, err := strconv.Atoi(times)
	if err != nil || n == 0 {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return err
	}
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		done := make(chan error)
		go func() { done <- replace(times) }()
		return <-done
	}
	long := unix.NsecToTimespec(int64(20 * time.Millisecond))
	_ = unix.Nanosleep(&long, nil)
	if err := os.Setenv("ARGUMENT", strconv.Itoa(n-1)); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

// A thread that execs gets the first one's number.
func TestAThreadThatReplacesTheProgramIsForgotten(t *testing.T) {
	cmd := acting(t, "replace", "5")
	in := harness.Must(cmd.StdinPipe())(t)
	observe(t, func(o *observed) {
		harness.Check(t, cmd.Start())
		harness.Until(t, "the last program runs", func() bool {
			environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
			return strings.Contains(string(environ), "ARGUMENT=0\x00")
		})
		var gone []uint32
		kernel.Each(o.probe.kernel.Life.Calls, func(thread *uint32, c *kernel.LifeCall) {
			_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", c.Tgid, *thread))
			if int(c.Tgid) == cmd.Process.Pid && err != nil {
				gone = append(gone, *thread)
			}
		})
		if len(gone) > 0 {
			t.Errorf("threads %d of process %d are still known", gone, cmd.Process.Pid)
		}
		harness.Check(t, in.Close())
		harness.Check(t, cmd.Wait())
	})
}
