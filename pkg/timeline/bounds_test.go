package timeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func pod(uid string) func(*event.Exec) { return func(e *event.Exec) { e.Call.Pod.UID = uid } }

func TestWhatFollowsOnWhat(t *testing.T) {
	s := tell(t)
	s.plugin(0, "a", "ADD", "bridge", pod("u")).exit(8, "a", 1).
		plugin(10, "b", "DEL", "bridge", pod("u")).exit(12, "b").tick(2000).
		plugin(3000, "c", "DEL", "bridge", pod("u"), netns("")).exit(3001, "c").tick(5000).
		plugin(6000, "d", "ADD", "bridge", pod("u"), container("c2")).exit(6001, "d").tick(8000).
		plugin(9000, "e", "ADD", "bridge", pod("other"), container("c3")).exit(9001, "e").tick(11000)
	var got []string
	for _, op := range s.closed {
		line := fmt.Sprintf("%s %s attempt %d", op.Kind, op.ContainerID, op.Attempt)
		for _, b := range op.Before {
			line += fmt.Sprintf(" <- %s (%s %s)", b.Why, b.Kind, b.First)
		}
		got = append(got, line)
	}
	want := []string{
		"setup c1 attempt 1",
		"teardown c1 attempt 0 <- setup of the sandbox (setup a)",
		"teardown c1 attempt 0 <- setup of the sandbox (setup a) <- earlier teardown (teardown b)",
		"setup c2 attempt 2 <- previous attempt (setup a)",
		"setup c3 attempt 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestACallUnderWayIsSeen(t *testing.T) {
	s := tell(t)
	s.line.options.Hung = 30 * time.Second
	s.plugin(0, "b", "ADD", "bridge").command(10, "i", "b", "iptables").exit(20, "i").
		command(30, "s", "b", "sh").command(40, "w", "s", "sleep").tick(29_000)
	flights := s.line.InFlight()
	if len(flights) != 1 || flights[0].Plugin != "bridge" || flights[0].Name != "sleep" || flights[0].Since != 40*ms {
		t.Errorf("in flight: %+v", flights)
	}
	harness.Equal(t, len(s.line.Overdue()), 0, "overdue after 29 s")
	s.tick(30_000)
	harness.Equal(t, len(s.line.Overdue()), 1, "overdue after 30 s")
	harness.Equal(t, len(s.line.Overdue()), 0, "overdue again")
	s.exit(40_000, "w").exit(40_001, "s").exit(40_002, "b").tick(45_000)
	if len(s.line.InFlight()) != 0 || !s.closed[0].Calls[0].Hung {
		t.Error("a call that hung is over, and marked")
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := newHistory(3)
	for i := range 100 {
		h.put(fmt.Sprint(i), model.Key{})
		h.put("kept", model.Key{Start: int64(i)})
	}
	if len(h.entries) != 3 || h.order.Len() != 3 || h.get("kept").count != 100 {
		t.Errorf("%d entries", len(h.entries))
	}
	of8 := newPasts(8)
	for h, want := range map[*history]int{of8.vouched: 32, of8.hearsay: 32, of8.orphans: 8} {
		for i := range 100 {
			h.put(fmt.Sprint(i), model.Key{})
		}
		harness.Equal(t, len(h.entries), want, "entries for 8 operations")
	}
}

func TestEverythingIsBounded(t *testing.T) {
	s := tell(t)
	for i := range 1000 {
		s.plugin(0, fmt.Sprint("p", i), "ADD", "bridge", container(fmt.Sprint("c", i)))
		s.at(int64(i), &event.Sandbox{ID: fmt.Sprint("c", i)})
	}
	for i := range 1000 {
		s.command(1, fmt.Sprint("x", i), "p0", "iptables").exit(1, fmt.Sprint("x", i))
	}
	for i := range 1000 {
		s.at(1, &event.Fork{Process: event.Process(fmt.Sprint("f", i)), Parent: "p1"})
	}
	harness.Equal(t, len(s.line.open), 8, "open operations")
	if n := len(s.followed()); n > 64 {
		t.Errorf("%d processes", n)
	}
	if n := held(s.line.pods, "sandboxes", "known"); n > 32 {
		t.Errorf("%d sandboxes", n)
	}
	harness.Equal(t, s.line.pods.Sandbox("c968") != nil, true, "the earliest of the last 32 sandboxes is known")
	first := s.line.open[0]
	if n := part(first, "images").Int(); n != 32 || first.Dropped != 1000-31 {
		t.Errorf("%d images kept, %d dropped", n, first.Dropped)
	}
	harness.Equal(t, s.line.Stats().Refused, 992+1000-(64-8), "refused operations and processes")
	harness.EqualSlices(t, s.line.open[1].Partial, []string{"more processes than the limit"})
	if ops := s.line.Flush(); len(ops) != 8 || len(s.followed()) != 0 {
		t.Errorf("flushed %d operations, %d processes left", len(ops), len(s.followed()))
	}
}

func lost(process event.Process) *event.Lost {
	return &event.Lost{Source: "probe", Reason: "over quota", Count: 3, Process: process}
}

// Of losses with runs not yet read the latest are stored; the others are counted.
func TestEarlyLossesAreBounded(t *testing.T) {
	s := tell(t)
	for i := range 20 {
		s.at(9, lost(event.Process(fmt.Sprint(i))))
	}
	harness.Equal(t, s.line.Stats().Late, 12, "late of 20 losses")
	for _, process := range []string{"11", "12"} {
		s.plugin(9, process, "ADD", "bridge", container(process))
	}
	for _, op := range s.tick(10).end().closed {
		harness.Equal(t, slices.Contains(op.Partial, "lost events: over quota"), op.ContainerID == "12", op.ContainerID, "is partial")
	}
	harness.Equal(t, s.line.Stats().Late, 19, "late, all but that of 12")
}

// A loss is reported before its run is read; without a run it is counted.
func TestLossesOfNobodyAreCounted(t *testing.T) {
	s := tell(t).plugin(0, "o", "ADD", "bridge", container("c2")).at(9, lost("b")).at(9, lost("x")).at(9, lost("y")).
		plugin(2, "b", "ADD", "bridge")
	for _, step := range []struct {
		at   int64
		late uint64
	}{{5, 0}, {9, 0}, {10, 2}, {11, 2}} {
		harness.Equal(t, s.tick(step.at).line.Stats().Late, step.late, "late at", step.at)
	}
}

func TestLateFactsAreCounted(t *testing.T) {
	s := tell(t).plugin(0, "b", "ADD", "bridge").command(1, "d", "b", "daemon").exit(2, "b").tick(2000)
	s.command(2001, "e", "d", "child").exit(2002, "d")
	harness.Equal(t, s.line.Stats().Late, 3, "late: a fork, an exec and an exit")
	s.calls(2003, "b", "s1").plugin(2004, "c", "ADD", "bridge", for2).calls(2005, "c", "s2")
	before := s.line.Stats().Late
	for of, want := range map[string]uint64{"nobody": 6, "a": 0, "c": 0} { // a is an agent, c a plugin
		p := event.Process(of)
		for _, body := range []event.Body{
			&event.Wait{Process: p, Kind: event.WaitCall, Name: "read"}, &event.Request{Process: p, Name: "RTM_NEWLINK"}, &event.Enter{Process: p},
			&event.Link{Process: p, NetNS: event.Namespace{Key: "1"}, Index: 7, Name: "eth0"}, &event.Setting{Process: p, Key: "x"}, &event.Mount{Process: p},
		} {
			s.at(2010, body)
		}
		harness.Equal(t, s.line.Stats().Late-before, want, "late facts of", of)
		before = s.line.Stats().Late
	}
}

// In any order, late, twice or never: no process is followed for an ended operation.
func TestInAnyOrderNobodyIsFollowedForWhatIsOver(t *testing.T) {
	for seed := range uint64(300) {
		r, s, now := rand.New(rand.NewPCG(seed, 7)), tell(t), int64(0)
		for range 200 {
			now += int64(r.IntN(300)) - 20
			s.at(now, anything(r))
			for _, p := range s.followed() {
				if !slices.Contains(s.line.open, p.Op) {
					t.Fatalf("seed %d: a process of an operation that is over", seed)
				}
			}
		}
		for i := range 14 {
			s.exit(100_000, fmt.Sprint("p", i))
		}
		s.tick(200_000).end()
		if n := s.line.tree.Len() + len(s.line.open) + held(s.line.connections, "sockets") +
			held(s.line.connections, "pending"); n != 0 {
			t.Fatalf("seed %d: %d things are left", seed, n)
		}
	}
}

func anything(r *rand.Rand) event.Body {
	some := func(what string, n int) string { return fmt.Sprint(what, r.IntN(n)) }
	process, other, socket := event.Process(some("p", 14)), event.Process(some("p", 14)), some("s", 5)
	switch r.IntN(14) {
	case 0, 1:
		return &event.Fork{Process: process, Parent: other}
	case 2, 3:
		e := &event.Exec{
			Process: process, Parent: other, Root: r.IntN(2) == 0, InPath: r.IntN(2) == 0, Stdin: some("",
				3), Mentions: []string{some("c", 3)},
		}
		if r.IntN(3) > 0 {
			e.Call = &event.Call{Command: []string{"ADD", "DEL"}[r.IntN(2)], ContainerID: some("c", 3), IfName: "eth0"}
		}
		return e
	case 4:
		return &event.Exit{Process: process, Unseen: r.IntN(3) == 0}
	case 5, 6:
		return &event.Connect{Process: process, Socket: socket, Network: "unix", Address: "/run/a"}
	case 7, 8:
		return &event.Accept{
			Socket: socket, Agent: event.Actor{Process: other, PID: 3, Name: "agent"},
			Listens: r.IntN(3) == 0,
		}
	case 9:
		return &event.Close{Process: process, Socket: socket}
	case 10:
		return &event.Agent{
			Process: process, Over: r.IntN(2) == 0, CPU: int64(r.IntN(100)),
			State: event.AgentState(some("", 3)),
		}
	case 11, 12:
		x := &event.Exchange{
			Process: process, Socket: socket, Pending: r.IntN(2) == 0, Unasked: r.IntN(3) == 0,
			Start: int64(r.IntN(3)) * ms,
		}
		if r.IntN(2) == 0 {
			x.Peer = &event.Actor{Process: other, PID: 3, Name: "peer"}
		}
		return x
	}
	return &event.Tick{}
}

// A pod's setup: bridge with its delegated plugin and 57 commands.
func BenchmarkApply(b *testing.B) {
	s := tell(nil).plugin(0, "b", "ADD", "bridge").command(1, "hl", "b", "host-local", delegate).exit(2, "hl")
	for i := range 57 {
		s.command(3, fmt.Sprint("i", i), "b", "iptables").exit(3, fmt.Sprint("i", i))
	}
	events := s.exit(4, "b").at(5, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(6).
		at(7, &event.Sandbox{Phase: event.SandboxRemoved, ID: "c1"}).told
	t := tell(nil).line
	t.options.Images, t.options.Facts, t.options.Settle = 1000, 500, 0
	closed, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		e := events[i%len(events)]
		e.Time += int64(i/len(events)) * 1000 * ms // repeated a second later
		closed += len(t.Apply(e))
		i++
	}
	if want := i / len(events); closed < want {
		b.Fatalf("%d operations, want %d", closed, want)
	}
}
