package probe

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

const stops = 10 // of each kind

func init() {
	dialers["writesfast"] = func(string) error { // until it is killed
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err == nil {
			_, err = os.Stdout.WriteString("ready\n")
		}
		for err == nil {
			_, err = null.WriteString("x")
		}
		return err
	}
}

type stopping func(t *testing.T, pid int) (goOn func())

func bySignal(t *testing.T, pid int) func() {
	harness.Check(t, unix.Kill(pid, unix.SIGSTOP))
	harness.Until(t, "it is stopped", func() bool {
		s, err := procfs.StatOf(pid)
		return err == nil && s.State == "T"
	})
	return func() { harness.Check(t, unix.Kill(pid, unix.SIGCONT)) }
}

// byTracer attaches to all threads, as a debugger does.
func byTracer(t *testing.T, pid int) func() {
	runtime.LockOSThread() // only this thread may detach
	threads := harness.Must(filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*"))(t)
	each := func(do func(tid int) error) {
		for _, thread := range threads {
			tid, err := strconv.Atoi(filepath.Base(thread))
			harness.Check(t, errors.Join(err, do(tid)))
		}
	}
	each(func(tid int) error {
		if err := unix.PtraceAttach(tid); err != nil {
			return err
		}
		_, err := unix.Wait4(tid, nil, unix.WALL, nil)
		return err
	})
	return func() {
		each(unix.PtraceDetach)
		runtime.UnlockOSThread()
	}
}

func byFreezer(top, file, freeze, thaw string) stopping {
	return func(t *testing.T, pid int) func() {
		if _, err := os.Stat(top); err != nil {
			t.Skipf("no such cgroups: %v", err)
		}
		own := filepath.Join(top, "cniscope-stopped-"+strconv.Itoa(pid))
		if err := os.Mkdir(own, 0o755); err == nil {
			t.Cleanup(func() { _ = os.Remove(own) })
		}
		put := func(name, value string) { harness.Check(t, os.WriteFile(filepath.Join(own, name), []byte(value), 0)) }
		put("cgroup.procs", strconv.Itoa(pid))
		put(file, freeze)
		return func() { put(file, thaw) }
	}
}

func TestWhoIsStoppedWaitsForNothing(t *testing.T) {
	for name, stop := range map[string]stopping{
		"signal": bySignal, "tracer": byTracer,
		"cgroup v2": byFreezer("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
		"cgroup v1": byFreezer("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
	} {
		t.Run(name, func(t *testing.T) {
			cmd := acting(t, "writesfast", "")
			out := harness.Must(cmd.StdoutPipe())(t)
			var all []struct{ start, end int64 }
			o := observe(t, func(*observed) {
				harness.Check(t, cmd.Start())
				_, err := bufio.NewReader(out).ReadString('\n')
				harness.Check(t, err)
				for len(all) < stops {
					goOn := stop(t, cmd.Process.Pid)
					start := clock.Monotonic()
					time.Sleep(20 * time.Millisecond)
					all = append(all, struct{ start, end int64 }{start + int64(5*time.Millisecond), clock.Monotonic()})
					goOn()
				}
				harness.Check(t, cmd.Process.Kill())
				_ = cmd.Wait()
			})
			spans := map[string]int{}
			for _, e := range o.events {
				w, is := e.Body.(*event.Wait)
				if !is || w.Kind != event.WaitCall {
					continue
				}
				for _, s := range all {
					if w.Start <= s.start && e.Time >= s.end {
						spans[w.Name]++
					}
				}
			}
			if len(spans) > 0 {
				t.Errorf("of %d times in which it was stopped, system calls span: %v", stops, spans)
			}
		})
	}
}

// A busy reader may find a plugin in the kernel's table before it has read its exec.
func TestAStoppedPluginIsSaidThoughItsExecWasReadLate(t *testing.T) {
	harness.Root(t)
	p := harness.Must(Open(Options{Ring: 1 << 20, Processes: 1024, Depth: 1, Detail: DetailCommands, Log: slog.New(slog.DiscardHandler)}))(t)
	defer func() { harness.Check(t, p.Close()) }()
	ours, read, said := harness.NewOurs(container), false, ""
	r := p.reader(func(e event.Event) {
		if !ours.Has(e) {
			return
		}
		switch b := e.Body.(type) {
		case *event.Exec:
			read = true
		case *event.Agent:
			said += fmt.Sprintf("process %d is %s\n", b.PID, b.State)
		}
	})
	cmd := acting(t, "writesfast", "")
	out := harness.Must(cmd.StdoutPipe())(t)
	harness.Check(t, cmd.Start())
	harness.Must(bufio.NewReader(out).ReadString('\n'))(t)
	bySignal(t, cmd.Process.Pid)

	r.sweep(watermark{now: clock.Monotonic()})
	harness.Until(t, "its exec is read", func() bool {
		for record, more := p.kernel.Records.Next(); more; record, more = p.kernel.Records.Next() {
			r.raw(clock.Monotonic(), record)
		}
		return read
	})
	r.now += int64(dutiesEvery) // without an event
	r.halts()
	harness.Check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	harness.Equal(t, said, fmt.Sprintf("process %d is %s\n", cmd.Process.Pid, event.AgentStopped))
}

// Reading the state of all processes of a burst costs more than decoding its events. The time of a parent is its
// child's, so it is read at once only after the child's end.
func TestAStoppedParentIsSaidAfterItsChild(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	harness.Start(t, cmd)
	bySignal(t, cmd.Process.Pid)
	pid := uint32(cmd.Process.Pid)
	parent := kernel.ProcessOf(kernel.Key{Tgid: pid, Start: uint64(harness.Must(procfs.StatOf(int(pid)))(t).Start)})
	for _, test := range []struct {
		childEnds bool
		after     time.Duration
		said      int
	}{{true, dutiesEvery, 1}, {false, dutiesEvery, 0}, {false, 10 * dutiesEvery, 1}} {
		said := 0
		r := &reader{
			table: newTable(nil), decoder: decode.New(decode.Options{Processes: 16}), sink: func(event.Event) { said++ },
		}
		r.table.note(event.Event{Time: 1, Body: &event.Exec{Process: parent, PID: pid, Root: true}})
		r.table.note(event.Event{Time: 1, Body: &event.Fork{Process: "1@1", Parent: parent}})
		r.now = 1
		if test.childEnds {
			r.now = int64(time.Minute)
			r.table.note(event.Event{Time: r.now, Body: &event.Exit{Process: "1@1"}})
			r.halts()
			harness.Equal(t, said, 0, "at the child's end")
		}
		r.now += int64(test.after)
		r.halts()
		harness.Equal(t, said, test.said, test.childEnds, test.after)
	}
}

// A burst has more processes than are read at once: each waits for its turn, and none for luck.
func TestManyProcessesAreLookedAtInTurn(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	harness.Start(t, cmd)
	bySignal(t, cmd.Process.Pid)
	pid := uint32(cmd.Process.Pid)
	start := uint64(harness.Must(procfs.StatOf(int(pid)))(t).Start)
	said := map[event.Process]bool{}
	r := &reader{
		table: newTable(nil), decoder: decode.New(decode.Options{Processes: 16}),
		sink: func(e event.Event) { said[e.Body.(*event.Agent).Process] = true },
	}
	for n := range uint32(4 * polledMax) {
		process := kernel.ProcessOf(kernel.Key{Tgid: n, Start: start})
		r.table.note(event.Event{Time: 1, Body: &event.Exec{Process: process, PID: pid, Root: true}})
	}
	for turn := range 4 {
		r.now += int64(dutiesEvery) + 1
		r.halts()
		harness.Equal(t, len(said), (turn+1)*polledMax, "after turn", turn)
	}
}
