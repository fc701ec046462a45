package connector

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// container is the id of all calls of these tests.
var container = harness.Container()

// observed are the Connector's events of the test's plugins.
type observed struct {
	*Connector
	mu     sync.Mutex
	ours   *harness.Ours
	events []event.Event
}

func (o *observed) take(e event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, is := e.Body.(*event.Tick); o.ours.Has(e) && !is {
		o.events = append(o.events, e)
	}
}

func (o *observed) list() []event.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

func observe(t *testing.T) *observed {
	t.Helper()
	anchors := anchor.New()
	anchors.Serves("a socket", os.Getpid())
	o := &observed{ours: harness.NewOurs(container)}
	ctx, cancel := context.WithCancel(t.Context())
	opened, ended := make(chan error), make(chan error, 1)
	go func() { // Open's thread gets priority, and ends with the goroutine
		var err error
		o.Connector, err = Open(Options{Processes: 1000, Arguments: arguments.Known, Anchors: anchors, Log: slog.New(slog.DiscardHandler)})
		if opened <- err; err == nil {
			ended <- errors.Join(o.Run(ctx, o.take), o.Close())
		}
	}()
	err := <-opened
	if _, is := errors.AsType[*UnsupportedError](err); is {
		cancel()
		t.Skip(err) // such as in a PID namespace
	}
	harness.Check(t, err)
	t.Cleanup(func() {
		cancel()
		harness.Check(t, <-ended)
	})
	harness.Eventually(t, func() error { // existing processes are known
		if o.Stats().Known == 0 {
			return errors.New("it has not begun")
		}
		return nil
	})
	return o
}

// plugin makes a script, and a command that runs it as a plugin.
func plugin(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bridge")
	harness.Check(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755))
	cmd := exec.Command(file)
	cmd.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID="+container, "CNI_IFNAME=eth0", "CNI_PATH="+filepath.Dir(file))
	return cmd
}

func (o *observed) tree(t *testing.T) (lines []string) {
	t.Helper()
	harness.Eventually(t, func() error {
		lines = nil
		var root event.Process
		over := false
		for _, e := range o.list() {
			switch b := e.Body.(type) {
			case *event.Exec:
				if b.Root {
					root = b.Process
				}
				if b.Unidentified {
					b.Name = "?"
				}
				lines = append(lines, "exec "+b.Name)
			case *event.Exit:
				lines = append(lines, fmt.Sprintf("exit %d%s", b.Code, b.Signal))
				over = over || b.Process == root
			}
		}
		if !over {
			return fmt.Errorf("the plugin is not over: %v; %+v", lines, o.Stats())
		}
		return nil
	})
	return lines
}

func TestAPluginsTree(t *testing.T) {
	for _, test := range []struct {
		script string
		want   []string
	}{
		{"sleep 0.1; exit 7", []string{"exec bridge", "exec sleep", "exit 0", "exit 7"}},
		{"(sleep 0.05; exit 3); true", []string{"exec bridge", "exec sleep", "exit 0", "exit 3", "exit 0"}},
		{"sleep 0.05; exec sleep 0.05", []string{"exec bridge", "exec sleep", "exit 0", "exec sleep", "exit 0"}},
		{"sleep 10 & sleep 0.05; kill -KILL $!; wait; kill -TERM $$", []string{"exec bridge", "exec sleep", "exec sleep", "exit 0", "exit 0SIGKILL", "exit 0SIGTERM"}},
	} {
		o := observe(t)
		_ = plugin(t, test.script).Run()
		harness.EqualSlices(t, o.tree(t), test.want, test.script)
	}
}

func TestACallUnderWay(t *testing.T) {
	cmd := plugin(t, "cat >/dev/null; exit 2")
	in := harness.Must(cmd.StdinPipe())(t)
	harness.Check(t, cmd.Start())
	harness.Eventually(t, func() error {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err == nil && len(children) == 0 {
			err = errors.New("no child")
		}
		return err
	})
	o := observe(t)
	harness.Eventually(t, func() error {
		execs := 0
		for _, e := range o.list() {
			if _, is := e.Body.(*event.Exec); is {
				execs++
			}
		}
		if execs < 2 {
			return fmt.Errorf("of the plugin and its cat %d are found", execs)
		}
		return nil
	})
	_ = in.Close()
	_ = cmd.Wait()
	o.tree(t)
	first := o.list()
	i := slices.IndexFunc(first, func(e event.Event) bool { _, is := e.Body.(*event.Exec); return is })
	e := first[i].Body.(*event.Exec)
	if !e.InFlight || e.Call == nil || e.Call.ContainerID != container || e.Caller != event.CallerRuntime {
		t.Errorf("%+v", e)
	}
}

func TestWhoHoldsALockIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	held := harness.Must(os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600))(t)
	defer held.Close()
	harness.Check(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	o := observe(t)
	cmd := plugin(t, "sleep 0.05; exec flock "+file+" true") // long enough to be identified
	harness.Check(t, cmd.Start())
	harness.Eventually(t, func() error { // wait until it waits
		locks, err := procfs.Locks(locksMax)
		if err == nil && !slices.ContainsFunc(locks, func(l procfs.Lock) bool { return l.Waits && l.PID == cmd.Process.Pid }) {
			err = errors.New("nobody waits")
		}
		return err
	})
	time.Sleep(waitsAfter + 10*waitsEvery) // long enough to be sampled
	harness.Check(t, unix.Flock(int(held.Fd()), unix.LOCK_UN))
	_ = cmd.Wait()
	o.tree(t)
	for _, e := range o.list() {
		if w, is := e.Body.(*event.Wait); is {
			if w.Kind != event.WaitLock || w.Name != "flock" || w.Path == "" || w.Holder == nil || w.Holder.PID != uint32(os.Getpid()) || w.Until(e.Time)-w.Start < int64(waitsEvery) {
				t.Errorf("%+v, held by %+v, for %s", w, w.Holder, time.Duration(w.Until(e.Time)-w.Start))
			}
			return
		}
	}
	t.Error("nothing is said of it")
}

func TestWhoIsNoPlugin(t *testing.T) {
	o := observe(t)
	cmd := plugin(t, "exit 0")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "sleep 0.05"}
	harness.Check(t, cmd.Run())
	_ = plugin(t, "sleep 0.05").Run()
	if got := o.tree(t); len(got) != 4 {
		t.Errorf("%v", got)
	}
}

func TestMessagesOfOthersAreNotBelieved(t *testing.T) {
	s, err := newSocket()
	if err != nil {
		t.Skip(err)
	}
	defer s.close()
	name := harness.Must(unix.Getsockname(s.fd))(t)
	other := harness.Must(unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_CONNECTOR))(t)
	defer unix.Close(other)
	var forged [messageMax]byte
	binary.NativeEndian.PutUint32(forged[0:], messageMax)
	binary.NativeEndian.PutUint32(forged[16:], idxProc)
	binary.NativeEndian.PutUint32(forged[20:], valProc)
	binary.NativeEndian.PutUint32(forged[offsetWhat:], whatExec)
	to := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: name.(*unix.SockaddrNetlink).Pid}
	if err := unix.Sendto(other, forged[:], 0, to); err != nil {
		t.Skip(err) // only the kernel may send
	}
	for {
		n, err := s.read(0)
		if err != nil || n == 0 {
			t.Fatalf("it did not come: %v", err)
		}
		for i := range n {
			if s.names[i].Pid != 0 {
				if _, ok := s.message(i); ok {
					t.Error("believed")
				}
				return
			}
		}
	}
}
