//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Crashes, each in the middle of an ADD: no pod fails of one, and what comes after it
// is traced as what came before.

func TestCniscopeIsKilledInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	s := set(t, true, g.rig(), scope.Options{TOML: patient})
	pod := s.podIn(g, "standing")
	loaded := bpfOf(t, s.scope.PID())
	s.scope.Kill9()
	s.pod(rig.PodOptions{Name: "unseen"})
	s.startScope(scope.Options{TOML: patient}) // while the plugin still waits
	g.open()
	check(t, <-pod)

	t.Run("nothing of it stays in the kernel", func(t *testing.T) {
		if len(loaded.programs) == 0 || len(loaded.maps) == 0 {
			t.Fatalf("nothing was loaded: %+v", loaded)
		}
		s.eventually(func() error { return loaded.gone() })
		t.Logf("gone: programs %v, maps %v", loaded.programs, loaded.maps)
	})
	t.Run("the next one takes over", func(t *testing.T) {
		s.pod(rig.PodOptions{Name: "next"})
		s.traced("next")
	})
	t.Run("the call in flight is found, and said to be partial", func(t *testing.T) {
		if !inInitialPIDNamespace(t) {
			t.Skip("calls in flight at start are found in the initial PID namespace only")
		}
		var call *span
		s.spans("cniscope", func(all []*span) error {
			for _, x := range only(of(all, "standing"), "call", "CNI ADD") {
				if x.text("cni.ifname") == "eth0" {
					call = x
					return nil
				}
			}
			return errors.New("its call has not arrived")
		})
		if why := call.text("cniscope.partial_reason"); why != "already running when cniscope started" {
			t.Errorf("partial: %q", why)
		}
		standing := only(of(s.calls("ADD", 1), "standing"), "plugin", "gate ADD")
		if len(standing) != 1 || !standing[0].attrs["cniscope.in_flight_at_start"].GetBoolValue() || standing[0].attrs["process.exit.code"] == nil {
			t.Errorf("the plugin that waited: %v", standing)
		}
	})
}

func TestJaegerIsKilledInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	s := set(t, true, g.rig(), scope.Options{TOML: patient})
	pod := s.podIn(g, "standing")
	s.jaeger.Kill9()
	g.open()
	check(t, <-pod)
	names := []string{"standing"}
	for i := range 3 {
		names = append(names, fmt.Sprintf("dark-%d", i))
		s.pod(rig.PodOptions{Name: names[i+1]})
	}
	s.logged("the export fails and will be tried again", 1)
	check(t, s.jaeger.Restart(s.ctx))
	for _, name := range names { // what waited arrives
		s.traced(name)
	}
	s.logged("the export works again", 1)
	if log := s.scope.LogText(); !strings.Contains(log, "dropped=0") {
		t.Errorf("operations were dropped:\n%s", log)
	}
}

func TestContainerdIsKilledInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	s := set(t, true, g.rig(), scope.Options{TOML: patient})
	before := s.pod(rig.PodOptions{Name: "before"})
	pod := s.podIn(g, "torn")
	s.rig.Kill9Containerd()
	if err := <-pod; err == nil {
		t.Error("a pod runs whose containerd is gone")
	}
	g.open()
	check(t, s.rig.RestartContainerd(s.ctx))
	s.logged("NRI: registered", 2)

	s.pod(rig.PodOptions{Name: "after"})
	s.traced("after")
	check(t, s.rig.StopPod(s.ctx, before))
	s.spans("cniscope", func(all []*span) error {
		if len(only(of(all, "before"), "call", "CNI DEL")) == 0 {
			return errors.New("the teardown of a pod of containerd's former life has not arrived")
		}
		return nil
	})
	torn := s.spans("cniscope", func(all []*span) error {
		if len(only(of(all, "torn"), "call", "CNI ADD")) < 2 {
			return errors.New("the call that was torn off has not arrived")
		}
		return nil
	})
	for _, x := range only(of(torn, "torn"), "call", "CNI ADD") {
		t.Logf("torn: %s: %s; %v", x.text("cni.ifname"), x.GetStatus().GetMessage(), x.attrs["cniscope.never_run"])
		if x.text("cni.ifname") == "eth0" && !x.failed() {
			t.Error("the call whose chain broke off does not count as failed")
		}
	}
}

// Told to end, cniscope says goodbye: what is open is sent as it is.
func TestCniscopeIsStoppedInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	// Of the ordinary nothing is kept; what is cut off is not ordinary.
	s := set(t, false, g.rig(), scope.Options{TOML: "[sampling]\nratio = 0.0\n"})
	pod := s.podIn(g, "web-0")
	began := time.Now()
	check(t, s.scope.Stop()) // exit code 0
	t.Logf("ended within %s", time.Since(began).Round(time.Millisecond))
	all := s.calls("ADD", 1)
	unfinished := 0
	for _, x := range only(all, "plugin", "gate ADD") {
		if x.attrs["cniscope.unfinished"].GetBoolValue() {
			unfinished++
		}
	}
	if unfinished != 1 {
		t.Errorf("the plugin that had not ended was not sent as unfinished: %v", all)
	}
	for _, x := range only(all, "call", "CNI ADD") {
		if why := x.text("cniscope.partial_reason"); why != "still under way when cniscope ended" {
			t.Errorf("%s is partial because %q", x.text("cni.ifname"), why)
		}
		if x.failed() {
			t.Errorf("%s counts as failed: %s", x.text("cni.ifname"), x.GetStatus().GetMessage())
		}
	}
	g.open()
	check(t, <-pod)
}

func TestTheSecondCniscopeSaysWhoHoldsTheNode(t *testing.T) {
	s := set(t, false, rig.Options{}, scope.Options{TOML: patient})
	for _, command := range [][]string{{"run"}, {"record", filepath.Join(t.TempDir(), "second.rec")}} {
		out, err := exec.Command(program, append(command, "--config", s.scope.Config())...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: it ended with %v", command[0], err)
		}
		for _, says := range []string{"already observes this node", fmt.Sprintf("pid %d, since 20", s.scope.PID()), filepath.Join(s.rig.Dir(), "run", "lock"), "stop that one first"} {
			if !strings.Contains(string(out), says) {
				t.Errorf("%s: it does not say %q:\n%s", command[0], says, out)
			}
		}
	}
	s.pod(rig.PodOptions{Name: "web-0"}) // the first goes on
	s.traced("web-0")
	s.scope.Kill9()
	s.startScope(scope.Options{TOML: patient}) // the lock went with its holder
}

// gate is a plugin in which an ADD stands until the test lets it go.
type gate struct {
	*testing.T
	fifo string
	held *os.File
}

func newGate(t *testing.T) *gate {
	g := &gate{T: t, fifo: filepath.Join(t.TempDir(), "gate")}
	t.Cleanup(g.open)
	return g
}

// rig has the gate as the second of three plugins.
func (g *gate) rig() rig.Options {
	return rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("gate"), rig.Portmap()}}},
		Plugins: map[string][]byte{"gate": rig.Script(fmt.Sprintf(
			`if [ "$CNI_COMMAND" = ADD ] && [ -p %[1]s ]; then read -r go <%[1]s || :; fi`, g.fifo))},
	}
}

// podIn runs a pod and returns when its ADD stands in the gate, which is there for
// this pod alone. The channel says what
// became of it.
func (s *stage) podIn(g *gate, name string) <-chan error {
	s.Helper()
	check(s.T, unix.Mkfifo(g.fifo, 0o600))
	done := make(chan error, 1)
	go func() {
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: name})
		done <- err
	}()
	// A FIFO can be opened for writing, without waiting, once somebody reads.
	s.eventually(func() error {
		select {
		case err := <-done:
			s.Fatalf("pod %s did not wait: %v", name, err)
		default:
		}
		var err error
		g.held, err = os.OpenFile(g.fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
		return err
	})
	check(s.T, os.Remove(g.fifo))
	return done
}

func (g *gate) open() {
	if g.held != nil {
		_ = g.held.Close() // the reader comes to the end of the file
		g.held = nil
	}
}

// traced waits for a pod's setup in Jaeger, with what only NRI knows.
func (s *stage) traced(pod string) {
	s.Helper()
	s.spans("cniscope", func(all []*span) error {
		all = of(all, pod)
		for _, x := range append(only(all, "call", "CNI ADD"), only(all, "operation", "")...) {
			if x.attrs["cniscope.sandbox_running"].GetBoolValue() && x.text("k8s.pod.ip") != "" {
				return nil
			}
		}
		return fmt.Errorf("%s's setup has not arrived with what NRI knows; %d spans of it have", pod, len(all))
	})
}

func inInitialPIDNamespace(t *testing.T) bool {
	t.Helper()
	link, err := os.Readlink("/proc/self/ns/pid")
	check(t, err)
	return link == fmt.Sprintf("pid:[%d]", uint32(0xEFFFFFFC)) // PROC_PID_INIT_INO
}

// loadedBPF are the ids of what a process has loaded into the kernel, and how many of
// its programs are attached.
type loadedBPF struct {
	programs, maps []uint32
	attached       int
}

func bpfOf(t *testing.T, pid int) (b loadedBPF) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	check(t, err)
	for _, file := range files {
		text, _ := os.ReadFile(file) // closed meanwhile
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			switch {
			case err != nil:
			case key == "prog_id":
				b.programs = append(b.programs, uint32(id))
			case key == "link_id":
				b.attached++
			case key == "map_id":
				b.maps = append(b.maps, uint32(id))
			}
		}
	}
	return b
}

// gone is nil once the kernel knows none of it. Ids are not used again soon.
func (b loadedBPF) gone() error {
	for _, id := range b.programs {
		if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("program %d is still there", id), err, p.Close())
		}
	}
	for _, id := range b.maps {
		if m, err := ebpf.NewMapFromID(ebpf.MapID(id)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("map %d is still there", id), err, m.Close())
		}
	}
	return nil
}
