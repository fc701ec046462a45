package anchor

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func pids(anchors []Anchor) (all []int) {
	for _, a := range anchors {
		all = append(all, a.PID)
	}
	return all
}

// sleeper sleeps until the test ends or kills it.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "600")
	harness.Check(t, c.Start())
	t.Cleanup(func() { end(c) })
	return c
}

func end(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

func TestWhoListensOnTheSocketIsTheRuntime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	l := harness.Must(net.Listen("unix", path))(t)
	defer l.Close()
	s := New()
	harness.Check(t, s.Ask(t.Context(), path))
	list := s.List()
	if !slices.Equal(pids(list), []int{os.Getpid()}) || list[0].How != "serves "+path {
		t.Errorf("the runtime is %v, not us, %d", list, os.Getpid())
	}
	if !slices.Contains(s.PIDs(), os.Getpid()) || slices.Contains(s.PIDs(), os.Getppid()) {
		t.Error("we are the runtime, and our parent is not")
	}
}

func TestSocketActivationNamesNobody(t *testing.T) {
	s := New()
	for _, pid := range []int{0, 1, -1} {
		if s.Serves("/run/a.sock", pid) || len(s.List()) != 0 {
			t.Errorf("pid %d is taken for the runtime", pid)
		}
	}
}

func TestAnAnchorThatEndedStaysAndIsNobody(t *testing.T) {
	s := New()
	first, second := sleeper(t), sleeper(t)
	s.Serves("/run/a.sock", first.Process.Pid)
	end(first)
	if len(s.List()) != 1 || slices.Contains(s.PIDs(), first.Process.Pid) {
		t.Errorf("%v after its end", s.List())
	}
	s.Serves("/run/a.sock", second.Process.Pid)
	if list := s.List(); !slices.Equal(pids(list), []int{second.Process.Pid}) {
		t.Errorf("%v, want only who serves now", list)
	}
}

func TestAReusedNumberIsNobody(t *testing.T) {
	s := New()
	old, _ := lookUp(os.Getpid())
	old.Start -= int64(procfs.Tick)
	s.put("test", []Anchor{old})
	if slices.Contains(s.PIDs(), os.Getpid()) {
		t.Error("who has the number now is taken for who had it")
	}
}

func TestAWatcherSeesEachChangeOnce(t *testing.T) {
	s := New()
	one := sleeper(t)
	var seen [][]int
	stop := s.Watch(func(a []Anchor) { seen = append(seen, pids(a)) })
	s.Serves("/run/a.sock", one.Process.Pid)
	s.Serves("/run/a.sock", one.Process.Pid)
	s.Serves("/run/b.sock", one.Process.Pid)
	stop()
	s.Serves("/run/a.sock", os.Getpid())
	want := [][]int{nil, {one.Process.Pid}}
	if !slices.EqualFunc(seen, want, slices.Equal) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}
