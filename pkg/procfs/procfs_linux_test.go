package procfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatIsKnownOfThisProcess(t *testing.T) {
	s, err := StatOf(os.Getpid())
	if err != nil || s.Parent != os.Getppid() || s.Zombie() || s.Start <= 0 || s.Start%int64(Tick) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	status, err := StatusOf(os.Getpid())
	if err != nil || status.UID != uint64(os.Getuid()) {
		t.Errorf("%+v, %v", status, err)
	}
	self, err := os.Executable()
	if file, err2 := Executable(os.Getpid()); file != self || err != nil || err2 != nil {
		t.Errorf("we run %q, %v, not %q, %v", file, err2, self, err)
	}
	for _, kind := range []string{"net", "mnt", "pid", "user"} {
		ns, err := Namespace(os.Getpid(), kind)
		own, err2 := OwnNamespace(kind)
		var want unix.Stat_t
		if err := errors.Join(err, err2, unix.Stat("/proc/self/ns/"+kind, &want)); err != nil || uint64(ns) != want.Ino || own != ns {
			t.Errorf("our %s namespace is %d and %d, not %d: %v", kind, ns, own, want.Ino, err)
		}
	}
}

func TestNobodyHasTheNumberZero(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		_, err := StatOf(pid)
		_, err2 := StatusOf(pid)
		_, err3 := Namespace(pid, "net")
		_, err4 := NewMemory().Environment(pid)
		for _, err := range []error{err, err2, err3, err4} {
			if !Gone(err) {
				t.Errorf("process %d: %v", pid, err)
			}
		}
	}
}

func TestAProcessIsNotTheOneThatHadItsPIDBefore(t *testing.T) {
	s := harness.Must(StatOf(os.Getpid()))(t)
	for name, test := range map[string]struct {
		pid   int
		start int64
		want  bool
	}{
		"it":                        {os.Getpid(), s.Start, true},
		"it, by the kernel's clock": {os.Getpid(), s.Start + int64(Tick) - 1, true},
		"one before it":             {os.Getpid(), s.Start - int64(time.Minute), false},
		"one after it":              {os.Getpid(), s.Start + int64(time.Minute), false},
		"nobody":                    {1 << 30, s.Start, false},
	} {
		if Exists(test.pid, test.start) != test.want || Alive(test.pid, test.start) != test.want {
			t.Errorf("%s: exists %v, alive %v", name, Exists(test.pid, test.start), Alive(test.pid, test.start))
		}
	}
}

func TestAZombieExistsAndIsNotAlive(t *testing.T) {
	cmd := exec.Command("true")
	harness.Check(t, cmd.Start())
	pid := cmd.Process.Pid
	harness.Check(t, unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	s, err := StatOf(pid)
	if err != nil || !s.Zombie() || !Exists(pid, s.Start) || Alive(pid, s.Start) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := cmd.Wait(); err != nil || Exists(pid, s.Start) {
		t.Errorf("it exists after its end (%v)", err)
	}
}

// A burst reads some ten of these for each pod.
func TestAProcessIsReadCheaply(t *testing.T) {
	for name, read := range map[string]func(){
		"stat":         func() { _, _ = StatOf(os.Getpid()) },
		"first thread": func() { _ = FirstThread(os.Getpid()) },
	} {
		if allocations := testing.AllocsPerRun(20, read); allocations > 10 {
			t.Errorf("%s: %g allocations", name, allocations)
		}
	}
}

func TestAHostileName(t *testing.T) {
	const name = "x) Z 1\n(1 1 1" // 15 bytes at most
	file := filepath.Join(t.TempDir(), name)
	data, err := os.ReadFile("/bin/sleep")
	if err == nil {
		err = os.WriteFile(file, data, 0o755)
	}
	harness.Check(t, err)
	cmd := exec.Command(file, "1000")
	harness.Start(t, cmd)
	s, err := StatOf(cmd.Process.Pid)
	if err != nil || s.Name != name || s.Zombie() || s.Parent != os.Getpid() {
		t.Errorf("%+v, %v", s, err)
	}
	harness.Equal(t, FirstThread(cmd.Process.Pid).Start, s.Start, "start of its first thread")
	if status, err := StatusOf(cmd.Process.Pid); err != nil || status.UID != uint64(os.Getuid()) {
		t.Errorf("%+v, %v", status, err)
	}
	harness.Check(t, os.Remove(file))
	if got, err := Executable(cmd.Process.Pid); got != file || err != nil {
		t.Errorf("it runs %q, %v", got, err)
	}
	// Start returns before the kernel has set the arguments.
	var arguments []string
	harness.Until(t, "it has arguments", func() bool {
		arguments, err = NewMemory().Arguments(cmd.Process.Pid)
		return err != nil || len(arguments) > 0
	})
	if err != nil || strings.Join(arguments, "|") != file+"|1000" {
		t.Errorf("%q, %v", arguments, err)
	}
}

func TestHowAProcessEnded(t *testing.T) {
	for status, want := range map[uint32]string{
		0x0000: "0", 0x0300: "3", 0x0009: "0SIGKILL", 0x008b: "0SIGSEGV", 0x0022: "0signal 34",
	} {
		code, signal := ExitOf(status)
		harness.Equal(t, fmt.Sprint(code)+signal, want, status)
	}
}

// Reading the namespaces of all processes takes milliseconds, so the noted one comes first. One that is gone, or lives
// elsewhere now, is searched for.
func TestTheNotedProcessOfANamespaceComesFirst(t *testing.T) {
	r, own := &Residents{}, harness.Must(OwnNamespace("net"))(t)
	found := func(inode uint32) (pids []int) {
		wanted := map[uint32]bool{inode: true}
		for pid, in := range Inside(r, wanted) {
			pids = append(pids, pid)
			delete(wanted, in)
		}
		return pids
	}
	r.Note(os.Getpid())
	harness.EqualSlices(t, found(own), []int{os.Getpid()}, "noted")
	const absent = 1 << 30
	r.note(own, absent)
	pids := found(own)
	if len(pids) != 1 || pids[0] == absent || r.noted(own) != pids[0] {
		t.Errorf("after the noted one left: %v, noted %d", pids, r.noted(own))
	}
	r.note(1, os.Getpid())
	harness.EqualSlices(t, found(1), nil, "of a namespace that is gone")
}
