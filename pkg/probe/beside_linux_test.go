package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/test/harness"
)

// seen is what one of two observers saw of a process.
type seen struct {
	parent       uint32
	forked       int64
	names        []string
	execs        []int64
	unidentified int
	root, over   bool
	exit         int64
	code         uint32
}

// view is what one observer saw, by the numbers of processes.
type view struct {
	mu        sync.Mutex
	processes map[uint32]*seen
	keys      map[event.Process]uint32
}

// open is an error while a process has not ended.
func (v *view) open() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for pid, s := range v.processes {
		if !s.over {
			return fmt.Errorf("process %d has not ended", pid)
		}
	}
	return nil
}

func newView() *view {
	return &view{processes: map[uint32]*seen{}, keys: map[event.Process]uint32{}}
}

func (v *view) take(e event.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := func(key event.Process, pid uint32) *seen {
		v.keys[key] = pid
		if v.processes[pid] == nil {
			v.processes[pid] = &seen{}
		}
		return v.processes[pid]
	}
	switch b := e.Body.(type) {
	case *event.Fork:
		s := of(b.Process, b.PID)
		s.forked, s.parent = e.Time, v.keys[b.Parent]
	case *event.Exec:
		s := of(b.Process, b.PID)
		s.parent, s.root = b.ParentPID, s.root || b.Root
		if b.Unidentified {
			s.unidentified++
			b.Name = "?"
		}
		s.names, s.execs = append(s.names, b.Name), append(s.execs, e.Time)
	case *event.Exit:
		if s := v.processes[v.keys[b.Process]]; s != nil {
			s.over, s.exit, s.code = true, e.Time, b.Code
		}
	}
}

// TestTheConnectorBesideTheProbe has a runtime run plugins, and compares what both say of them. What the
// connector tells must be a part of what the probe does; how much of it was identified, and how far times
// are apart, it logs. The process connector tells only who is in the initial PID namespace.
func TestTheConnectorBesideTheProbe(t *testing.T) {
	r := startRuntime(t)
	b := observeBoth(t, r.cmd.Process.Pid)
	r.call(t)
	b.stop(t)
	compareViews(t, b.byProbe, b.byConnector)
	t.Logf("%+v", b.connector.Stats())
}

// both are the two observers, and what they saw.
type both struct {
	probe                *Probe
	connector            *connector.Connector
	byProbe, byConnector *view
	cancel               func()
	ended                chan error
}

// observeBoth begins to observe what a runtime does.
func observeBoth(t *testing.T, runtime int) *both {
	t.Helper()
	anchors := anchor.New()
	anchors.Serves("a socket", runtime)
	log := slog.New(slog.DiscardHandler)
	b := &both{byProbe: newView(), byConnector: newView(), ended: make(chan error, 2)}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() { // its thread has priority
		c, err := connector.Open(connector.Options{Processes: 4096, Arguments: arguments.Known, Anchors: anchors, Log: log})
		b.connector = c
		opened <- err
		if err == nil {
			b.ended <- errors.Join(c.Run(ctx, b.byConnector.take), c.Close())
		}
	}()
	if err := <-opened; err != nil {
		b.cancel()
		t.Skip(err)
	}
	p, err := Open(Options{Ring: 8 << 20, Processes: 4096, Arguments: arguments.Known, Detail: DetailCommands, Anchors: anchors, Log: log})
	if err != nil {
		b.cancel()
		t.Skip(errors.Join(err, <-b.ended))
	}
	b.probe = p
	go func() { b.ended <- p.Run(ctx, b.byProbe.take) }()
	harness.Eventually(t, func() error { // what was there is known
		if b.connector.Stats().Known == 0 {
			return errors.New("the connector has not begun")
		}
		return nil
	})
	return b
}

// stop ends both when what they were told has had its turn.
func (b *both) stop(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func() error { return b.byProbe.open() })
	b.cancel()
	if err := errors.Join(<-b.ended, <-b.ended, b.probe.Close()); err != nil {
		t.Error(err)
	}
}

func compareViews(t *testing.T, probe, connector *view) {
	t.Helper()
	var roots, missing, execs, unidentified, unseen, wrong int
	var apart []int64
	note := func(a, b int64) { apart = append(apart, max(a-b, b-a)) }
	for pid, b := range connector.processes {
		a := probe.processes[pid]
		switch {
		case a == nil:
			t.Errorf("only the connector has process %d: %+v", pid, *b)
			continue
		case a.parent != b.parent || a.root != b.root:
			wrong++
		case a.over && b.over:
			note(a.exit, b.exit)
			if a.code != b.code {
				t.Errorf("process %d exited with %d, and with %d", pid, a.code, b.code)
			}
		}
		if len(a.execs) == len(b.execs) {
			for i := range a.execs {
				note(a.execs[i], b.execs[i])
				if b.names[i] != "?" && b.names[i] != a.names[i] {
					t.Errorf("process %d ran %v, and %v", pid, a.names, b.names)
				}
			}
		}
	}
	for pid, a := range probe.processes {
		b := connector.processes[pid]
		execs += len(a.execs)
		if a.root {
			roots++
		}
		if b == nil {
			unseen += len(a.execs)
			if a.root {
				missing++
			}
			continue
		}
		unidentified += b.unidentified
	}
	slices.Sort(apart)
	if wrong > 0 || roots == 0 || len(apart) == 0 {
		t.Fatalf("%d wrong parents, %d calls, %d times", wrong, roots, len(apart))
	}
	t.Logf("calls: %d, %d not identified; programs: %d, %d not identified, %d not in a tree; times apart: p50 %s, p99 %s",
		roots, missing, execs, unidentified, unseen, time.Duration(apart[len(apart)/2]), time.Duration(apart[len(apart)*99/100]))
	if missing*100 > roots {
		t.Errorf("%d of %d calls were not identified, want 1 %% at most", missing, roots)
	}
}

// BenchmarkForeignPrograms is what the connector costs for a program of somebody else: the time of the thread
// that reads.
func BenchmarkForeignPrograms(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	opened, ended := make(chan error), make(chan unix.Rusage, 1)
	var c *connector.Connector
	var before unix.Rusage
	go func() {
		anchors := anchor.New()
		anchors.Serves("a socket", os.Getppid())
		var err error
		c, err = connector.Open(connector.Options{Processes: 4096, Arguments: arguments.Known, Anchors: anchors, Log: slog.New(slog.DiscardHandler)})
		opened <- err
		if err != nil {
			return
		}
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &before)
		_ = c.Run(ctx, func(event.Event) {})
		var after unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
		ended <- after
	}()
	if err := <-opened; err != nil {
		b.Skip(err)
	}
	time.Sleep(300 * time.Millisecond) // it has looked at what was there
	first := c.Stats()
	b.ResetTimer()
	loop := exec.Command("/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done", b.N))
	if err := loop.Run(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	cancel()
	after, last := <-ended, c.Stats()
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	programs := last.Looked.Strangers + last.Missed.Strangers - first.Looked.Strangers - first.Missed.Strangers
	b.ReportMetric(float64(used)/float64(max(1, programs)), "cpu-ns/program")
	_ = c.Close()
}
