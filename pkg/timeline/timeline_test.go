package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const ms = int64(time.Millisecond)

// story writes events as a person would tell them: at a time, by names.
type story struct {
	t      *testing.T
	line   *Timeline
	closed []*Operation
}

func tell(t *testing.T) *story {
	return &story{t: t, line: New(Options{
		Settle: time.Second, MaxHold: time.Minute, Processes: 64, Operations: 8, Spans: 32,
	})}
}

func (s *story) at(at int64, body event.Body) *story {
	s.closed = append(s.closed, s.line.Apply(event.Event{Time: at * ms, Body: body})...)
	return s
}

// plugin is a run started by containerd (process "cd").
func (s *story) plugin(at int64, process, command, name string, change ...func(*event.Exec)) *story {
	e := &event.Exec{
		Process: event.Process(process), Parent: "cd", Root: true, InPath: true,
		File: "/opt/cni/bin/" + name, Name: name, Stdin: "pipe-" + process,
		Call: &event.Call{Command: command, ContainerID: "c1", IfName: "eth0", NetNS: "/run/netns/c1"},
	}
	for _, f := range change {
		f(e)
	}
	return s.at(at, e)
}

// command is a program run by the process parent, in a process of its own.
func (s *story) command(at int64, process, parent, name string, change ...func(*event.Exec)) *story {
	s.at(at, &event.Fork{Process: event.Process(process), Parent: event.Process(parent)})
	return s.image(at, process, parent, name, change...)
}

// image is a program run by a process that is there already.
func (s *story) image(at int64, process, parent, name string, change ...func(*event.Exec)) *story {
	e := &event.Exec{Process: event.Process(process), Parent: event.Process(parent), File: "/usr/sbin/" + name, Name: name}
	for _, f := range change {
		f(e)
	}
	return s.at(at, e)
}

func (s *story) exit(at int64, process string, code ...uint32) *story {
	e := &event.Exit{Process: event.Process(process)}
	if len(code) > 0 {
		e.Code = code[0]
	}
	return s.at(at, e)
}

func (s *story) end() *story {
	s.closed = append(s.closed, s.line.Flush()...)
	return s
}

func (s *story) tick(at int64) *story { return s.at(at, &event.Tick{}) }

func delegate(e *event.Exec) {
	e.File, e.InPath, e.Stdin = "/opt/cni/bin/"+e.Name, true, "pipe-"+string(e.Process)
	e.Call = &event.Call{Command: "ADD", ContainerID: "c1", IfName: "eth0"}
}

func on(ifname string) func(*event.Exec)  { return func(e *event.Exec) { e.Call.IfName = ifname } }
func netns(path string) func(*event.Exec) { return func(e *event.Exec) { e.Call.NetNS = path } }
func by(process string) func(*event.Exec) {
	return func(e *event.Exec) { e.Parent = event.Process(process) }
}

func container(id string) func(*event.Exec) { return func(e *event.Exec) { e.Call.ContainerID = id } }

// draw writes what was closed, one line each, indented by depth.
func draw(ops []*Operation) string {
	var b strings.Builder
	var image func(*Image, int)
	image = func(im *Image, depth int) {
		what := im.Name
		if im.Run != nil {
			what = im.Run.Plugin + " " + im.Run.Command
		}
		fmt.Fprintf(&b, "%s%s %d-%d", strings.Repeat("  ", depth), what, im.Start/ms, im.End/ms)
		for _, mark := range []struct {
			is   bool
			name string
		}{{im.Outlived, "outlived"}, {im.Replaced, "replaced"}, {!im.Ended, "unfinished"}, {im.Code != 0, fmt.Sprint("exit ", im.Code)}, {im.InFlight, "in flight"}} {
			if mark.is {
				fmt.Fprintf(&b, " (%s)", mark.name)
			}
		}
		b.WriteByte('\n')
		for _, child := range im.Children {
			image(child, depth+1)
		}
	}
	for _, op := range ops {
		fmt.Fprintf(&b, "%s %s %d-%d: %s", op.Kind, op.ContainerID, op.Start/ms, op.End/ms, op.Closed)
		for _, why := range op.Partial {
			fmt.Fprintf(&b, "; partial: %s", why)
		}
		b.WriteByte('\n')
		for _, c := range op.Calls {
			fmt.Fprintf(&b, "  %s %s %d-%d", c.Command, c.IfName, c.Start/ms, c.End/ms)
			if c.Network != "" {
				fmt.Fprintf(&b, " network %s", c.Network)
			}
			if len(c.NeverRun) > 0 {
				fmt.Fprintf(&b, " never run: %s", strings.Join(c.NeverRun, ", "))
			}
			b.WriteByte('\n')
			for _, run := range c.Runs {
				image(run, 2)
			}
		}
	}
	return b.String()
}

func bridged(types ...string) *event.Networks {
	n := event.Network{Name: "pods"}
	for _, t := range types {
		n.Plugins = append(n.Plugins, event.Plugin{Type: t})
	}
	return &event.Networks{Networks: []event.Network{n}}
}

func TestStories(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(*story)
		want string
	}{
		"a chain is one call; delegates and commands lie under who forked them": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "bridge").command(2, "hl", "b", "host-local", delegate).exit(4, "hl").
					command(5, "i", "b", "iptables").exit(7, "i", 1).exit(8, "b").
					plugin(10, "p", "ADD", "portmap").exit(12, "p").tick(500).tick(1012)
			},
			`setup c1 0-12: settled
  ADD eth0 0-12
    bridge ADD 0-8
      host-local ADD 2-4
      iptables 5-7 (exit 1)
    portmap ADD 10-12
`,
		},
		"lo and eth0 overlap and stay two calls": {
			func(s *story) {
				s.plugin(0, "l", "ADD", "loopback", on("lo")).plugin(1, "b", "ADD", "bridge").exit(3, "l").exit(8, "b").tick(2000)
			},
			`setup c1 0-8: settled
  ADD lo 0-3 network cni-loopback
    loopback ADD 0-3
  ADD eth0 1-8
    bridge ADD 1-8
`,
		},
		"exec replaces: one process, two images, side by side": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "bridge").command(1, "x", "b", "sh").image(3, "x", "b", "iptables").exit(6, "x").exit(9, "b").tick(2000)
			},
			`setup c1 0-9: settled
  ADD eth0 0-9
    bridge ADD 0-9
      sh 1-3 (replaced)
      iptables 3-6
`,
		},
		"a wrapper that execs the real plugin stays the run": {
			func(s *story) {
				same := func(e *event.Exec) { delegate(e); e.Stdin = "pipe-b" }
				s.plugin(0, "b", "ADD", "wrapped").image(2, "b", "cd", "real", same).exit(6, "b").tick(2000)
			},
			`setup c1 0-6: settled
  ADD eth0 0-6
    wrapped ADD 0-6
      real 2-6
`,
		},
		"a subshell has no image; what it runs lies under the image that forked it": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "shell").at(1, &event.Fork{Process: "sub", Parent: "b"}).
					command(2, "x", "sub", "sleep").exit(4, "x").exit(5, "sub").exit(6, "b").tick(2000)
			},
			`setup c1 0-6: settled
  ADD eth0 0-6
    shell ADD 0-6
      sleep 2-4
`,
		},
		"a daemon left behind is marked and holds nothing open": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "dhcp").command(1, "d", "b", "daemon").command(2, "e", "b", "helper").
					exit(3, "b").exit(5, "e").tick(2000).exit(9000, "d")
			},
			`setup c1 0-3: settled
  ADD eth0 0-3
    dhcp ADD 0-3
      daemon 1-3 (outlived) (unfinished)
      helper 2-5 (outlived)
`,
		},
		"NRI ends the wait, once what came before it has been read": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "bridge").exit(8, "b").
					at(60, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(59).tick(61)
			},
			`setup c1 0-8: sandbox running
  ADD eth0 0-8
    bridge ADD 0-8
`,
		},
		"a DEL ends the setup before it; its second call has an empty netns": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "bridge").exit(8, "b", 1).
					plugin(10, "d", "DEL", "bridge").exit(12, "d").
					plugin(15, "e", "DEL", "bridge", netns("")).exit(16, "e").tick(3000)
			},
			`setup c1 0-8: next operation
  ADD eth0 0-8
    bridge ADD 0-8 (exit 1)
teardown c1 10-16: settled
  DEL eth0 10-12
    bridge DEL 10-12
  DEL eth0 15-16
    bridge DEL 15-16
`,
		},
		"the chain's rest that never ran is named": {
			func(s *story) {
				s.at(0, bridged("bridge", "portmap", "firewall")).
					plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(9, "p", "ADD", "portmap").exit(10, "p", 1).tick(2000)
			},
			`setup c1 1-10: settled
  ADD eth0 1-10 network pods never run: firewall
    bridge ADD 1-8
    portmap ADD 9-10 (exit 1)
`,
		},
		"a chain that was cut off by the end of the observation is not said to have stopped": {
			func(s *story) {
				s.at(0, bridged("bridge", "portmap", "firewall")).
					plugin(1, "b", "ADD", "bridge").exit(8, "b").end()
			},
			`setup c1 1-8: observation ended; partial: still under way when cniscope ended
  ADD eth0 1-8 network pods
    bridge ADD 1-8
`,
		},
		"nor is a plugin that was running": {
			func(s *story) {
				s.at(0, bridged("bridge", "portmap")).
					plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(9, "p", "ADD", "portmap").at(12, &event.Tick{}).end()
			},
			`setup c1 1-12: observation ended; partial: still under way when cniscope ended
  ADD eth0 1-12 network pods
    bridge ADD 1-8
    portmap ADD 9-12 (unfinished)
`,
		},
		"a chain that was through, or that failed, is whole also if the observation ends at once": {
			func(s *story) {
				s.at(0, bridged("bridge", "portmap", "firewall")).
					plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(9, "p", "ADD", "portmap").exit(10, "p", 1).end()
			},
			`setup c1 1-10: observation ended
  ADD eth0 1-10 network pods never run: firewall
    bridge ADD 1-8
    portmap ADD 9-10 (exit 1)
`,
		},
		"nothing is missing in a sandbox that runs": {
			func(s *story) {
				s.at(0, bridged("bridge", "portmap")).
					plugin(1, "b", "ADD", "bridge").exit(8, "b").
					at(9, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(10)
			},
			`setup c1 1-8: sandbox running
  ADD eth0 1-8 network pods
    bridge ADD 1-8
`,
		},
		"who knows what the runtime had read of a configuration that has just changed": {
			func(s *story) {
				s.at(0, bridged("bridge")).
					plugin(1, "b", "DEL", "bridge").exit(8, "b").
					at(9, bridged("tuning", "bridge")).tick(2000)
			},
			`teardown c1 1-8: settled
  DEL eth0 1-8 network pods
    bridge DEL 1-8
`,
		},
		"DEL goes through the chain backwards": {
			func(s *story) {
				s.at(0, bridged("bridge", "portmap")).
					plugin(1, "p", "DEL", "portmap").exit(2, "p").plugin(3, "b", "DEL", "bridge").exit(4, "b").tick(2000)
			},
			`teardown c1 1-4: settled
  DEL eth0 1-4 network pods
    portmap DEL 1-2
    bridge DEL 3-4
`,
		},
		"two networks that could both be meant leave the call unnamed": {
			func(s *story) {
				two := &event.Networks{Networks: append(bridged("bridge", "a").Networks, bridged("bridge", "b").Networks...)}
				s.at(0, two).plugin(1, "b", "ADD", "bridge").exit(2, "b").tick(2000)
			},
			`setup c1 1-2: settled
  ADD eth0 1-2
    bridge ADD 1-2
`,
		},
		"the same plugin again is another call, unless the chain has it twice": {
			func(s *story) {
				s.plugin(0, "b", "DEL", "tuning").exit(1, "b").plugin(2, "c", "DEL", "tuning").exit(3, "c").tick(2000).
					at(2004, bridged("tuning", "tuning")).
					plugin(2005, "d", "DEL", "tuning").exit(2006, "d").plugin(2007, "e", "DEL", "tuning").exit(2008, "e").tick(4000)
			},
			`teardown c1 0-3: settled
  DEL eth0 0-1
    tuning DEL 0-1
  DEL eth0 2-3
    tuning DEL 2-3
teardown c1 2005-2008: settled
  DEL eth0 2005-2008 network pods
    tuning DEL 2005-2006
    tuning DEL 2007-2008
`,
		},
		"a run that an agent starts for the plugin belongs to the call that waits": {
			func(s *story) {
				s.plugin(0, "m", "ADD", "multus-shim").plugin(2, "x", "ADD", "macvlan", on("net1"), by("daemon")).exit(4, "x").exit(6, "m").tick(2000)
			},
			`setup c1 0-6: settled
  ADD eth0 0-6
    multus-shim ADD 0-6
    macvlan ADD 2-4
`,
		},
		"a call that hangs is let go at last, unfinished": {
			func(s *story) { s.plugin(0, "b", "ADD", "bridge").tick(59_000).tick(61_000).exit(90_000, "b") },
			`setup c1 0-61000: held too long; partial: still running
  ADD eth0 0-61000
    bridge ADD 0-61000 (unfinished)
`,
		},
		"lost events touch the run they belong to, or all that was open": {
			func(s *story) {
				s.plugin(0, "b", "ADD", "bridge").plugin(0, "o", "ADD", "bridge", container("c2")).
					at(1, &event.Lost{Source: "probe", Reason: "ring full", Count: 3, Process: "b"}).exit(2, "b").tick(1500).
					at(1501, &event.Lost{Source: "probe", Reason: "ring full", Count: 1}).exit(1502, "o").tick(4000)
			},
			`setup c1 0-2: settled; partial: lost events: ring full
  ADD eth0 0-2
    bridge ADD 0-2
setup c2 0-1502: settled; partial: lost events: ring full
  ADD eth0 0-1502
    bridge ADD 0-1502
`,
		},
		"what ran before cniscope did is marked": {
			func(s *story) {
				s.plugin(5, "b", "ADD", "bridge", func(e *event.Exec) { e.InFlight = true }).exit(9, "b").tick(2000)
			},
			`setup c1 5-9: settled; partial: already running when cniscope started
  ADD eth0 5-9
    bridge ADD 5-9 (in flight)
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			test.tell(s)
			if got := draw(s.closed); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
			if s.line.Open() != 0 {
				t.Errorf("%d operations are still open", s.line.Open())
			}
		})
	}
}

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
	if early := s.line.Overdue(); len(early) != 0 {
		t.Errorf("overdue after 29 s: %+v", early)
	}
	s.tick(30_000)
	if n := len(s.line.Overdue()); n != 1 {
		t.Errorf("%d calls are overdue after 30 s", n)
	}
	if again := s.line.Overdue(); len(again) != 0 {
		t.Error("it is said twice")
	}
	s.exit(40_000, "w").exit(40_001, "s").exit(40_002, "b").tick(45_000)
	if len(s.line.InFlight()) != 0 || !s.closed[0].Calls[0].Hung {
		t.Error("a call that hung is over, and marked")
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := newHistory(3)
	for i := range 100 {
		h.put(fmt.Sprint(i), Key{})
		h.put("kept", Key{Start: int64(i)})
	}
	if len(h.entries) != 3 || h.order.Len() != 3 || h.get("kept").count != 100 {
		t.Errorf("%d entries", len(h.entries))
	}
}

func TestEverythingIsBounded(t *testing.T) {
	s := tell(t)
	for i := range 1000 { // more calls than the limit
		s.plugin(0, fmt.Sprint("p", i), "ADD", "bridge", container(fmt.Sprint("c", i)))
		s.at(0, &event.Sandbox{ID: fmt.Sprint("c", i)})
	}
	for i := range 1000 { // more commands than the limit
		s.command(1, fmt.Sprint("x", i), "p0", "iptables").exit(1, fmt.Sprint("x", i))
	}
	for i := range 1000 { // more processes than the limit
		s.at(1, &event.Fork{Process: event.Process(fmt.Sprint("f", i)), Parent: "p1"})
	}
	if n := len(s.line.open); n != 8 {
		t.Errorf("%d operations open", n)
	}
	if n := len(s.line.processes); n > 64 {
		t.Errorf("%d processes", n)
	}
	if n := len(s.line.sandboxes); n > 32 {
		t.Errorf("%d sandboxes", n)
	}
	first := s.line.open[0]
	if first.images != 32 || first.Dropped != 1000-31 {
		t.Errorf("%d images kept, %d dropped", first.images, first.Dropped)
	}
	if s.line.Stats().Refused == 0 {
		t.Error("nothing counted as refused")
	}
	if ops := s.line.Flush(); len(ops) != 8 || len(s.line.processes) != 0 {
		t.Errorf("flushed %d operations, %d processes left", len(ops), len(s.line.processes))
	}
}

func TestLateFactsAreCounted(t *testing.T) {
	s := tell(t).plugin(0, "b", "ADD", "bridge").command(1, "d", "b", "daemon").exit(2, "b").tick(2000)
	s.command(2001, "e", "d", "child").exit(2002, "d")
	if late := s.line.Stats().Late; late != 3 {
		t.Errorf("%d late, want a fork, an exec and an exit", late)
	}
}
