package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/test/harness"
)

// container is the id of all calls of these tests, which differs from other plugins' on the machine.
var container = harness.Container()

type observed struct {
	mu     sync.Mutex
	since  int64 // monotonic ns: earlier events are another test's
	events []event.Event
	ours   *harness.Ours
	seen   []string // the containers of all calls
	agents []int    // PIDs of our servers
	// everyAccept: all processes that accept our connections count.
	everyAccept bool
	// all: all processes count.
	all bool
	// said are the lost events of all processes.
	said  uint64
	probe *Probe
	stats Stats // losses: of this test
}

func (o *observed) sink(e event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Time < o.since {
		return
	}
	accept := false
	switch b := e.Body.(type) {
	case *event.Lost:
		o.said += b.Count
	case *event.Exec:
		if b.Call != nil {
			o.seen = append(o.seen, b.Call.ContainerID)
		}
	case *event.Accept:
		// Agents of our plugins are ours.
		if slices.Contains(o.agents, int(b.Agent.PID)) {
			o.ours.Add(b.Agent.Process)
		}
		accept = true
	}
	if o.ours.Has(e) || accept && o.everyAccept || !accept && o.all {
		o.events = append(o.events, e)
	}
}

func printed[B event.Body](o *observed, bodies []B) string {
	names := map[event.Process]string{}
	for _, x := range o.execs() {
		names[x.Process] = x.Name
	}
	var lines strings.Builder
	for _, b := range bodies {
		text, _ := json.Marshal(b) // always succeeds
		fmt.Fprintf(&lines, "\n\t%s %T %s", cmp.Or(names[b.Doer()], string(b.Doer())), b, text)
	}
	return lines.String()
}

func (o *observed) execs() (all []*event.Exec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if x, ok := e.Body.(*event.Exec); ok {
			all = append(all, x)
		}
	}
	return all
}

func (o *observed) exit(p event.Process) *event.Exit {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if x, ok := e.Body.(*event.Exit); ok && x.Process == p {
			return x
		}
	}
	return nil
}

// observe uses the probe that all tests share. A test that is itself called as a server needs one of its own: its later
// plugins would be a server's work.
func observe(t *testing.T, f func(*observed)) *observed {
	t.Helper()
	harness.Root(t)
	if shared == nil {
		shared = newProbing(t, Options{})
		shared.used = true
	}
	if _, called := entryOf(shared.probe, os.Getpid()); called {
		t.Fatal("an earlier test was called as a server")
	}
	return shared.observe(t, f)
}

// observeProbe is observe with options, defaults for the others, and a probe of its own.
func observeProbe(t *testing.T, options Options, f func(*Probe, *observed)) *observed {
	t.Helper()
	s := ownProbing(t, options)
	return s.observe(t, func(o *observed) { f(s.probe, o) })
}

// plugin writes a shell script, and returns a command that calls it as libcni would.
func plugin(t *testing.T, name, script string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	harness.Check(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755))
	cmd := exec.Command(file)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "SECRET=canary", "CNI_IFNAME=eth0", "CNI_PATH=/nowhere:" + dir,
		"CNI_ARGS=K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop;IgnoreUnknown=1;K8S_POD_UID=u-1;TOKEN=canary",
		"CNI_CONTAINERID=" + container, "CNI_NETNS=/run/netns/c1", "CNI_COMMAND=ADD",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	return cmd
}

func TestAProcessTreeIsSeenWhole(t *testing.T) {
	cmd := plugin(t, "slow", `sh -c "exec sleep 0.01"; (sleep 0.02; exit 3); kill -9 $$`)
	cmd.Env = append(cmd.Env, "BAGGAGE=team=blue,key="+strings.Repeat("x", 600))
	o := observe(t, func(*observed) {
		if err := cmd.Run(); err == nil {
			t.Error("the plugin kills itself, and must be seen to")
		}
	})
	var names []string
	for _, e := range o.execs() {
		names = append(names, e.Name)
	}
	if len(names) != 4 || names[0] != "slow" || names[1] != "sh" || names[2] != "sleep" || names[3] != "sleep" {
		t.Fatalf("images: %q", names)
	}
	root, shell, replaced, subshell := o.execs()[0], o.execs()[1], o.execs()[2], o.execs()[3]
	if !root.Root || !root.InPath || root.Call == nil || root.Truncated {
		t.Fatalf("the plugin: %+v", root)
	}
	want := event.Call{
		Command: "ADD", ContainerID: container, NetNS: "/run/netns/c1", IfName: "eth0",
		Pod:     event.Pod{Namespace: "shop", Name: "web-0", UID: "u-1"},
		Trace:   event.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		Baggage: "team=blue",
	}
	harness.Equal(t, *root.Call, want, "call")
	if shell.Parent != root.Process || shell.Process != replaced.Process {
		t.Errorf(`sh -c "exec sleep" is one child with two images: %+v, %+v`, shell, replaced)
	}
	if subshell.Parent == root.Process {
		t.Errorf("the second sleep was forked by a subshell: %+v", subshell)
	}
	if x := o.exit(root.Process); x == nil || x.Signal != "SIGKILL" {
		t.Errorf("the plugin's end: %+v", x)
	}
	if x := o.exit(subshell.Parent); x == nil || x.Code != 3 {
		t.Errorf("the subshell's end: %+v", x)
	}
}

func TestADaemonThatInheritedTheEnvironmentIsNoPlugin(t *testing.T) {
	cmd := plugin(t, "any", "true")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "sleep 0.01; true"}
	o := observe(t, func(*observed) { _ = cmd.Run() })
	if got := o.execs(); len(got) != 0 {
		t.Errorf("seen: %+v", got[0])
	}
}

func entryOf(p *Probe, pid int) (entry kernel.LifeProcess, ok bool) {
	kernel.Each(p.kernel.Life.Processes, func(_ *uint32, e *kernel.LifeProcess) {
		if e.Self.Pid == uint32(pid) {
			entry, ok = *e, true
		}
	})
	return entry, ok
}

func TestACallAlreadyInFlightIsFound(t *testing.T) {
	cmd := plugin(t, "hung", "sleep 60; true")
	stdin := harness.Must(cmd.StdinPipe())(t)
	defer stdin.Close()
	harness.Check(t, cmd.Start())
	harness.Until(t, "it sleeps", func() bool { return slices.Contains(childrenOf(cmd.Process.Pid), "sleep") })
	home := uint32(0)
	o := observeProbe(t, Options{}, func(p *Probe, o *observed) {
		harness.Until(t, "it is found with its child", func() bool { return len(o.execs()) > 1 })
		if entry, ok := entryOf(p, cmd.Process.Pid); ok {
			home = entry.Home
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if home == 0 || home != trust.Namespace(uint32(os.Getpid()), "net") {
		t.Errorf("it began in namespace %d", home)
	}
	execs := o.execs()
	if len(execs) < 2 || execs[0].Name != "hung" || !execs[0].InFlight || !execs[0].Root || execs[1].Name != "sleep" {
		t.Fatalf("seen: %s", printed(o, execs))
	}
	if x := o.exit(execs[0].Process); x == nil || x.Signal != "SIGKILL" {
		t.Errorf("its end: %+v", x)
	}
}

func childrenOf(pid int) (names []string) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.ParseUint(child, 10, 32); err == nil {
			names = append(names, agents.Program(uint32(n)))
		}
	}
	return names
}

func TestTheReaderGoesOnLookingAfterTheLastEvent(t *testing.T) {
	idle := func() bool { return false }
	r := &reader{probe: &Probe{options: Options{Busy: idle}}, table: newTable(nil), now: int64(time.Hour)}
	r.lastEvent = r.now
	if r.deadline(r.now).IsZero() {
		t.Error("it waits for the next plugin, though its last event may not have been taken")
	}
	r.now += int64(quietAfter)
	if before := time.Now(); r.deadline(r.now).Sub(before) < kernel.ConnectedWithin-quietAfter {
		t.Error("it polls though nothing is tracked and nobody waits")
	}
	r.now += int64(kernel.ConnectedWithin)
	r.lastSweep = r.now
	if !r.deadline(r.now).IsZero() {
		t.Error("it polls though there is nothing to put away either")
	}
}

func TestTheReaderLooksLessOftenTheLongerNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{probe: &Probe{}, table: newTable(nil)}
		r.table.add("1")
		looks, took := 0, time.Duration(0)
		for now := int64(0); now < int64(time.Second); looks++ {
			wait := time.Until(r.deadline(now)).Round(time.Millisecond)
			if wait < took || wait < pollActive || wait > pollQuiet {
				t.Fatalf("%v after the last event it waits for %v, and had waited for %v before", time.Duration(now), wait, took)
			}
			took = wait
			now += int64(wait)
		}
		if took != pollQuiet || looks > 40 {
			t.Errorf("%d looks in a second without an event, the last after %v", looks, took)
		}
	})
}

func TestTheReaderLooksAsOftenAsTheRingNeeds(t *testing.T) {
	for _, test := range []struct {
		ring, taken int
		want        time.Duration
	}{
		{2 << 20, 0, dutiesEvery},
		{2 << 20, 64 << 10, dutiesEvery},
		{2 << 20, 64<<10 + 1, dutiesEvery / 2},
		{1 << 20, 0, (1 << 20) / 8 * kernel.ByteTime},
		{1 << 20, 1 << 20, (1 << 20) / 16 * kernel.ByteTime},
		{64 << 10, 0, pollActive},
	} {
		r := &reader{probe: &Probe{options: Options{Ring: test.ring}}, taken: test.taken}
		harness.Equal(t, r.pollActive(), test.want, "of a ring of", test.ring, "bytes", test.taken, "were read: it waits for")
	}
}
