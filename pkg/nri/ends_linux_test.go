package nri

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// A plugin that was called before the first look is known by its write alone.
func TestAPluginThatWasCalledBeforeTheFirstLook(t *testing.T) {
	for name, c := range map[string]struct {
		read uint64
		want event.AgentState
	}{
		"reads nothing more": {5, event.NRIAnswered},
		"is called late":     {6, ""},
	} {
		l := &looks{late: true}
		other := Other{Actor: event.Actor{PID: 1}, Read: 5, Wrote: 10}
		for range 5 {
			l.add([]Other{other})
		}
		other.Read, other.Wrote = c.read, 11
		all := l.end([]Other{other}, aliveOther, leastLooks)
		harness.Equal(t, all[0].State, c.want, name)
	}
}

func TestWhenANamespaceWasMounted(t *testing.T) {
	harness.Equal(t, mounted(os.Getpid(), os.Getppid()), 0, "in the runtime's namespace")
	harness.Equal(t, mounted(0, os.Getpid()), 0, "of no process")
	harness.Equal(t, mounted(os.Getpid(), 0), 0, "of an unknown runtime")
	child := exec.Command("cat")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	end := harness.Must(child.StdinPipe())(t)
	if os.Getuid() != 0 {
		t.Skip("makes a network namespace")
	}
	harness.Check(t, child.Start())
	if at := mounted(child.Process.Pid, os.Getpid()); at == 0 || at > time.Now().UnixNano() {
		t.Errorf("%d, not before now", at)
	}
	harness.Check(t, errors.Join(end.Close(), child.Wait()))
}

func TestTheStartOfTheRuntimeIsOnTheClockOfEvents(t *testing.T) {
	now := clock.Monotonic()
	if at := startOf(os.Getpid()); at > now || at < now-int64(10*time.Minute) {
		t.Errorf("this process started %v ago", time.Duration(now-at))
	}
	if at := startOf(0); at != 0 {
		t.Errorf("no process started at %d", at)
	}
}
