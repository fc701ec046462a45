package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/probe/subprocess"
	"github.com/cniscope/cniscope/test/harness"
)

// seen is a process as one observer saw it.
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

type view struct {
	mu        sync.Mutex
	ours      *harness.Ours
	processes map[uint32]*seen
	keys      map[event.Process]uint32
}

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
	return &view{ours: harness.NewOurs(container), processes: map[uint32]*seen{}, keys: map[event.Process]uint32{}}
}

func (v *view) take(e event.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ours.Has(e) {
		return
	}
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

// The connector's events must be part of the probe's. It works only in the initial PID namespace.
func TestTheConnectorBesideTheProbe(t *testing.T) {
	calls, atOnce := manyCalls()
	for _, n := range []int{atOnce, 1} {
		t.Run(fmt.Sprint(n, " at a time"), func(t *testing.T) {
			r := startRuntime(t, calls, n)
			b := observeBoth(t, r.cmd.Process.Pid)
			r.call(t)
			b.stop(t)
			c := compareViews(t, b.byProbe, b.byConnector)
			c.check(t, b.connector.Stats())
		})
	}
}

type both struct {
	probe                *Probe
	connector            *subprocess.Process
	byProbe, byConnector *view
	cancel               func()
	ended                chan error
}

func observeBoth(t *testing.T, caller int) *both {
	t.Helper()
	anchors := anchor.New()
	anchors.Serves("a socket", caller)
	log := slog.New(slog.DiscardHandler)
	b := &both{byProbe: newView(), byConnector: newView(), ended: make(chan error, 2)}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(t.Context())
	c, err := subprocess.Start(connector.Options{Processes: 4096, Arguments: arguments.Known, Anchors: anchors, Log: log}, actCommand(t, "connector"))
	if err != nil {
		b.cancel()
		t.Skip(err)
	}
	b.connector = c
	go func() { b.ended <- errors.Join(c.Run(ctx, b.byConnector.take), c.Close()) }()
	p, err := Open(Options{Ring: 8 << 20, Processes: 4096, Arguments: arguments.Known, Detail: DetailCommands, Anchors: anchors, Log: log})
	if err != nil {
		b.cancel()
		t.Skip(errors.Join(err, <-b.ended))
	}
	b.probe = p
	go func() { b.ended <- p.Run(ctx, b.byProbe.take) }()
	harness.Eventually(t, func() error { // existing processes are known
		if b.connector.Stats().Known == 0 {
			return errors.New("the connector has not begun")
		}
		return nil
	})
	return b
}

func (b *both) stop(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func() error { return b.byProbe.open() })
	b.cancel()
	harness.Check(t, errors.Join(<-b.ended, <-b.ended, b.probe.Close()))
}

type compared struct {
	calls, callsMissed                        int
	programs, unidentified, outside, wrongKin int
	// execs and exits are differences of times, in ns.
	execs, exits []int64
}

func compareViews(t *testing.T, probe, connector *view) (c compared) {
	t.Helper()
	apart := func(a, b int64) int64 { return max(a-b, b-a) }
	for pid, b := range connector.processes {
		a := probe.processes[pid]
		switch {
		case a == nil:
			t.Errorf("only the connector has process %d: %+v", pid, *b)
			continue
		case a.parent != b.parent || a.root != b.root:
			c.wrongKin++
		case a.over && b.over:
			c.exits = append(c.exits, apart(a.exit, b.exit))
			harness.Equal(t, a.code, b.code, "process", pid, "exited with")
		}
		if len(a.execs) == len(b.execs) {
			for i := range a.execs {
				c.execs = append(c.execs, apart(a.execs[i], b.execs[i]))
				if b.names[i] != "?" && b.names[i] != a.names[i] {
					t.Errorf("process %d ran %v, and %v", pid, a.names, b.names)
				}
			}
		}
	}
	for pid, a := range probe.processes {
		b := connector.processes[pid]
		c.programs += len(a.execs)
		if a.root {
			c.calls++
		}
		switch {
		case b != nil:
			c.unidentified += b.unidentified
		case a.root:
			c.callsMissed++
			fallthrough
		default:
			c.outside += len(a.execs)
		}
	}
	return c
}

func share(of []int64, percent int) time.Duration {
	slices.Sort(of)
	return time.Duration(of[len(of)*percent/100])
}

// check requires correct parents, and that each call was identified or counted as missed. It logs the rest.
func (c compared) check(t *testing.T, counted connector.Stats) {
	t.Helper()
	if c.wrongKin > 0 || c.calls == 0 || len(c.execs) == 0 || len(c.exits) == 0 {
		t.Fatalf("wrong parents, or nothing to compare: %+v", c)
	}
	t.Logf("calls: %d, %d not identified; programs: %d, %d not identified, %d not in a tree; "+
		"times apart: execs p50 %s, p99 %s; exits p50 %s, p99 %s; %+v",
		c.calls, c.callsMissed, c.programs, c.unidentified, c.outside,
		share(c.execs, 50), share(c.execs, 99), share(c.exits, 50), share(c.exits, 99), counted)
	if lost := counted.Lost[proctracker.LostCall] + counted.Lost[proctracker.LostNotices]; uint64(c.callsMissed) > lost {
		t.Errorf("%d of %d calls were not identified, and %d counted as missed", c.callsMissed, c.calls, lost)
	}
}
