package anchor

import (
	"io"
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

// program copies a program that writes a byte and reads until its input ends.
func program(t *testing.T, name string) string {
	t.Helper()
	harness.Root(t)
	path := filepath.Join(t.TempDir(), name)
	data, err := os.ReadFile("/bin/dash")
	if err != nil {
		t.Skip(err)
	}
	harness.Check(t, os.WriteFile(path, data, 0o755))
	return path
}

func started(t *testing.T, path string, in ...string) {
	t.Helper()
	line := slices.Concat(in, []string{path, "-c", "echo; read line"})
	c := exec.Command(line[0], line[1:]...)
	stdin := harness.Must(c.StdinPipe())(t)
	out := harness.Must(c.StdoutPipe())(t)
	harness.Check(t, c.Start())
	t.Cleanup(func() {
		stdin.Close()
		_ = c.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestWhomTheOperatorNames(t *testing.T) {
	for name, test := range map[string]struct {
		in             []string
		want, rootless bool
	}{
		"root":                             {nil, true, true},
		"root in another mount namespace":  {[]string{"unshare", "--mount"}, true, true},
		"root without CAP_SYS_ADMIN":       {[]string{"setpriv", "--bounding-set=-sys_admin"}, false, false},
		"a user":                           {[]string{"setpriv", "--reuid=65534", "--clear-groups"}, false, false},
		"root of a user namespace":         {[]string{"unshare", "--user", "--map-root-user"}, false, true},
		"… whose file is the host's":       {[]string{"unshare", "--user", "--map-root-user", "--mount"}, false, true},
		"… whose file is one of their own": {[]string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs none ${1%/*} && cp /bin/dash $1 && exec "$@"`, "sh"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := program(t, "runtime")
			for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
				harness.Check(t, os.Chmod(dir, 0o755))
			}
			started(t, path, test.in...)
			for rootless, want := range map[bool]bool{false: test.want, true: test.rootless} {
				s := New()
				s.Name([]string{"/nowhere", filepath.Dir(path) + "/run*"}, rootless)
				list := s.List()
				harness.Equal(t, (len(list) == 1), want, "rootless", rootless, list)
				if want && (list[0].How != byOption || list[0].Rootless == test.want) {
					t.Errorf("%+v", list[0])
				}
				if s.Name([]string{filepath.Dir(path)}, rootless); len(s.List()) != len(list) {
					t.Error("who was known is not any more")
				}
			}
		})
	}
}

func TestUsersTakeNoPlaceOfARuntimeThatMayDoAnything(t *testing.T) {
	path := program(t, "runtime")
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		harness.Check(t, os.Chmod(dir, 0o755))
	}
	for range maxNamed + 1 {
		started(t, path, "unshare", "--user", "--map-root-user")
	}
	started(t, path)
	s := New()
	s.Name([]string{path}, true)
	harness.Equal(t, len(s.List()), maxNamed, "are known")
	if !slices.ContainsFunc(s.List(), func(a Anchor) bool { return !a.Rootless }) {
		t.Error("the runtime that is root is not")
	}
}
