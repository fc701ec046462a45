package tree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

type story struct {
	*Tree
	roles []string
}

func (s *story) tell(body event.Body) *story {
	step := s.Apply(body)
	s.roles = append(s.roles, names[step.Role])
	return s
}

var names = map[Role]string{
	Unknown: "unknown", Refused: "refused", Forked: "forked", Root: "root", Delegate: "delegate", Image: "image",
	Command: "command", Work: "work", Exited: "exited",
}

func (s *story) fork(process, parent string) *story {
	return s.tell(&event.Fork{Process: event.Process(process), Parent: event.Process(parent)})
}

// runs is an exec with the environment of a call, and with stdin.
func (s *story) runs(process, parent, program, stdin string, change ...func(*event.Exec)) *story {
	e := &event.Exec{Process: event.Process(process), Parent: event.Process(parent), Name: program, Stdin: stdin}
	if strings.ToUpper(program) == program {
		e.InPath, e.Call = true, &event.Call{Command: "ADD", ContainerID: "c1"}
	}
	for _, f := range change {
		f(e)
	}
	return s.tell(e)
}

func (s *story) child(process, parent, program, stdin string, change ...func(*event.Exec)) *story {
	return s.fork(process, parent).runs(process, parent, program, stdin, change...)
}

func (s *story) exit(process string) *story {
	return s.tell(&event.Exit{Process: event.Process(process)})
}

func (s *story) serve(process string, depth int) *story {
	s.Serve(event.Process(process), depth)
	return s
}

func root(e *event.Exec)    { e.Root, e.Caller = true, event.CallerRuntime }
func byAgent(e *event.Exec) { e.Root, e.Caller = true, event.CallerAgent }
func calledBy(c event.Caller) func(*event.Exec) {
	return func(e *event.Exec) { e.Root, e.Caller = true, c }
}

func (s *story) draw() string {
	var b strings.Builder
	var run func(r *Run, indent string)
	owned := func(of map[event.Process]*Process) string {
		var list []string
		for _, key := range slices.Sorted(maps.Keys(of)) {
			mark := ""
			if of[key].Worker {
				mark = "!"
			}
			list = append(list, string(key)+mark)
		}
		return strings.Join(list, " ")
	}
	run = func(r *Run, indent string) {
		by := ""
		if r.Agent != nil {
			by = " by " + string(r.Agent.Process)
		}
		fmt.Fprintf(&b, "%srun %s%s: %s\n", indent, r.Leader, by, owned(r.processes))
		for _, inner := range slices.SortedFunc(maps.Keys(r.inner),
			func(a, b *Run) int { return strings.Compare(string(a.Leader), string(b.Leader)) }) {
			run(inner, indent+"  ")
		}
	}
	runs, agents := map[*Run]bool{}, map[*Agent]bool{}
	for _, key := range slices.Sorted(maps.Keys(s.processes)) {
		p := s.Get(key)
		if p.Run == nil {
			if !agents[p.Agent] {
				agents[p.Agent] = true
				fmt.Fprintf(&b, "agent %s, depth %d: %s\n", p.Agent.Process, p.Depth(), owned(p.Agent.processes))
			}
			continue
		}
		r := p.Run
		for r.Around != nil {
			r = r.Around
		}
		if !runs[r] {
			runs[r] = true
			run(r, "")
		}
	}
	return b.String()
}

func TestStories(t *testing.T) {
	for name, test := range map[string]struct {
		tell  func(*story)
		roles string // of the last steps
		want  string
	}{
		"a plugin, its delegate, and a command": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).child("h", "b", "HOST-LOCAL", "2").child("i", "b", "iptables", "none")
		}, "root forked delegate forked command", "run b: b i\n  run h: h\n"},
		"a helper beside the plugins inherits the input, or has none: a command": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).child("x", "b", "HELPER", "1").child("y", "b", "HELPER", event.NoStdin)
		}, "root forked command forked command", "run b: b x y\n"},
		"where the input is unknown the folder decides": {
			func(s *story) { s.runs("b", "cd", "BRIDGE", "1", root).child("h", "b", "HOST-LOCAL", "") },
			"root forked delegate",
			"run b: b\n  run h: h\n",
		},
		"without the call in its environment nothing is a plugin": {func(s *story) {
			s.runs("x", "cd", "bridge", "1", root).runs("b", "cd", "BRIDGE", "1", root).child("h", "b", "host-local", "2")
		}, "unknown root forked command", "run b: b h\n"},
		"a wrapper execs the real plugin with a here-document: the same run, which now reads that": {func(s *story) {
			s.runs("w", "cd", "WRAPPED", "1", root).runs("w", "cd", "REAL", "heredoc").
				child("x", "w", "HELPER", "heredoc").child("h", "w", "HOST-LOCAL", "1")
		}, "root image forked command forked delegate", "run w: w x\n  run h: h\n"},
		"a wrapper forks the real plugin with a here-document: a delegate": {
			func(s *story) { s.runs("w", "cd", "WRAPPED", "1", root).child("r", "w", "REAL", "heredoc") },
			"root forked delegate",
			"run w: w\n  run r: r\n",
		},
		"a delegate that is a wrapper, and has a delegate": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).child("w", "b", "IPAM", "2").runs("w", "b", "REAL", "heredoc").
				child("d", "w", "STATIC", "3")
		}, "root forked delegate image forked delegate", "run b: b\n  run w: w\n    run d: d\n"},
		"a subshell belongs to the run, and a delegate that it becomes is one": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).fork("s", "b").fork("t", "s").runs("t", "s", "STATIC", "2")
		}, "root forked forked delegate", "run b: b s\n  run t: t\n"},
		"a command becomes a delegate": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).child("n", "b", "nsenter", "1").runs("n", "b", "STATIC", "2")
		}, "root forked command delegate", "run b: b\n  run n: n\n"},
		"a fork was lost": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).runs("h", "b", "STATIC", "2").runs("i", "b", "ip", "none")
		}, "root delegate command", "run b: b i\n  run h: h\n"},
		"what goes on when the leader is gone still belongs to the run": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).child("h", "b", "DHCP", "2").child("d", "h", "daemon", "none").exit("h").
				exit("b").child("e", "d", "sh", "none")
		}, "root forked delegate forked command exited exited forked command", "run b: \n  run h: d e\n"},
		"nothing is left of a run when the last of it has exited": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).child("h", "b", "DHCP", "2").child("d", "h", "daemon", "none").exit("b").
				exit("h").exit("d").exit("d")
		}, "exited exited exited unknown", ""},
		"strangers are nobody's": {
			func(s *story) { s.fork("y", "x").runs("y", "x", "BRIDGE", "1").exit("y") },
			"unknown unknown unknown",
			"",
		},
		"an agent, what it starts, and an agent that it calls in its turn": {func(s *story) {
			s.runs("b", "cd", "BRIDGE", "1", root).serve("a", 1).child("i", "a", "ipset", "none").serve("db", 2).fork("w", "db")
		}, "root forked work forked", "agent a, depth 1: a i\nrun b: b\nagent db, depth 2: db w\n"},
		"an agent starts a plugin: a run of its own, below the agent, which plugins may be inside of": {func(s *story) {
			s.runs("b", "cd", "SHIM", "1", root).serve("a", 1).
				child("p", "a", "BRIDGE", "2", byAgent).child("h", "p", "HOST-LOCAL", "3")
		}, "root forked root forked delegate", "agent a, depth 1: a\nrun b: b\nrun p by a: p\n  run h: h\n"},
		"so it is by way of a helper, and where the fork was lost": {func(s *story) {
			s.serve("a", 1).child("s", "a", "sh", "none").child("p", "s", "BRIDGE", "2", byAgent).
				runs("q", "a", "BRIDGE", "3", byAgent)
		}, "forked work forked root root", "agent a, depth 1: a s\nrun p by a: p\nrun q by a: q\n"},
		"an agent's program in CNI_PATH that the source does not believe is its work": {
			func(s *story) { s.serve("a", 1).child("p", "a", "BRIDGE", "2") },
			"forked work",
			"agent a, depth 1: a p\n",
		},
		"a run's process that answers stays in its run": {
			func(s *story) { s.runs("b", "cd", "BRIDGE", "1", root).serve("b", 1).child("i", "b", "ip", "none") },
			"root forked command",
			"run b: b i\n",
		},
		"what an agent started answers itself": {
			func(s *story) { s.serve("a", 1).fork("d", "a").serve("d", 2).fork("e", "d") },
			"forked forked",
			"agent a, depth 1: a\nagent d, depth 2: d e\n",
		},
		"an agent is nearer to the plugins than was known": {
			func(s *story) { s.serve("a", 2).serve("a", 1).serve("a", 3) },
			"",
			"agent a, depth 1: a\n",
		},
		"an agent ends: what works for a call is followed on, the rest is not": {func(s *story) {
			s.serve("a", 1).fork("w", "a").fork("idle", "a")
			s.Assign(s.Get("w"))
			s.fork("v", "w").exit("a").fork("u", "w").fork("x", "idle")
		}, "forked exited forked unknown", "agent a, depth 1: u! v! w!\n"},
		"runs that an agent started outlive it": {func(s *story) {
			s.serve("a", 1).runs("p", "a", "BRIDGE", "2", byAgent).exit("a").child("i", "p", "ip", "none")
		}, "root exited forked command", "run p by a: i p\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{Tree: New(16)}
			test.tell(s)
			harness.Equal(t, s.draw(), test.want)
			if got := strings.Join(s.roles, " "); !strings.HasSuffix(got, test.roles) {
				t.Errorf("steps are %s, want %s", got, test.roles)
			}
		})
	}
}

func TestProcess(t *testing.T) {
	s := &story{Tree: New(16)}
	s.runs("b", "cd", "BRIDGE", "1", root).child("h", "b", "HOST-LOCAL", "2").child("i", "h", "ip", "none").
		serve("a", 2).child("p", "a", "BRIDGE", "3", byAgent).
		runs("x", "pod", "BRIDGE", "1", calledBy(event.CallerHost)).child("y", "x", "STATIC", "2")
	for key, want := range map[event.Process]struct {
		leads   bool
		vouched bool
		depth   int
	}{
		"b": {true, true, 0}, "h": {true, true, 0}, "i": {false, true, 0}, "p": {true, true, 0}, "x": {
			true, false,
			0,
		}, "y": {true, false, 0},
	} {
		p := s.Get(key)
		if p.Leads() != want.leads || p.Run.Vouched() != want.vouched || p.Depth() != want.depth {
			t.Errorf("%s: leads %v, vouched for %v, depth %d", key, p.Leads(), p.Run.Vouched(), p.Depth())
		}
	}
	if p := s.Get("a"); p.Depth() != 2 || p.Leads() || s.Agent("a").Process != "a" || s.Agent("b") != nil {
		t.Errorf("the agent is %+v", p)
	}
	if r := s.Get("i").Run; r.Leader != "h" || r.Stdin != "2" || r.Around.Leader != "b" || r.Call.ContainerID != "c1" {
		t.Errorf("the command's run is %+v", r)
	}
}

func TestBound(t *testing.T) {
	s := &story{Tree: New(2)}
	s.runs("b", "cd", "BRIDGE", "1", root).fork("c", "b").fork("d", "b").runs("r", "cd", "BRIDGE", "1", root)
	s.serve("a", 1).fork("e", "a").fork("f", "a")
	if s.Serve("g", 1) != nil {
		t.Error("one agent too many is followed")
	}
	harness.Equal(t, strings.Join(s.roles, " "), "root forked refused refused forked refused", "steps")
	harness.Equal(t, s.Len(), 4, "followed")
	if s.exit("c").fork("d", "b"); s.Get("d") == nil {
		t.Error("a place that became free is not used")
	}
}

func TestRunsAreForgotten(t *testing.T) {
	s := &story{Tree: New(4)}
	s.runs("b", "cd", "BRIDGE", "1", root)
	for i := range 100 {
		key := fmt.Sprint("h", i)
		s.child(key, "b", "STATIC", "2").exit(key)
	}
	if r := s.Get("b").Run; s.Len() != 1 || len(r.inner) != 0 {
		t.Errorf("%d processes and %d delegates are left", s.Len(), len(r.inner))
	}
}

func TestAStackIsBounded(t *testing.T) {
	tree := New(10)
	tree.Serve("agent", 1)
	step := tree.Apply(&event.Fork{Process: "child", Parent: "agent", Stack: make([]event.Frame, 1000)})
	harness.Equal(t, len(step.Process.Stack), framesMax)
}

func TestAnyOrderIsCountedRight(t *testing.T) {
	for seed := range uint64(500) {
		r, tree := rand.New(rand.NewPCG(seed, 1)), New(8)
		some := func() event.Process { return event.Process(fmt.Sprint("p", r.IntN(10))) }
		for range 60 {
			p := some()
			switch r.IntN(6) {
			case 0, 1:
				tree.Apply(&event.Fork{Process: p, Parent: some()})
			case 2:
				e := &event.Exec{
					Process: p, Parent: some(), Root: r.IntN(2) == 0, InPath: r.IntN(2) == 0,
					Stdin: fmt.Sprint(r.IntN(3)),
				}
				if r.IntN(3) > 0 {
					e.Call = &event.Call{}
				}
				tree.Apply(e)
			case 3:
				tree.Apply(&event.Exit{Process: p})
			case 4:
				tree.Serve(p, 1+r.IntN(2))
			case 5:
				if known := tree.Get(p); known != nil && r.IntN(2) == 0 {
					tree.Assign(known)
				} else if a := tree.Agent(p); a != nil {
					tree.Dismiss(a)
				}
			}
			consistent(t, seed, tree)
		}
	}
}

func consistent(t *testing.T, seed uint64, tree *Tree) {
	t.Helper()
	inRuns, ofAgents := 0, 0
	for key, p := range tree.processes {
		owned, n := tree.owner(p)
		if owned[key] != p {
			t.Fatalf("seed %d: %s is not with its owner", seed, key)
		}
		if n == &tree.inRuns {
			inRuns++
		} else {
			ofAgents++
		}
	}
	if inRuns != tree.inRuns || ofAgents != tree.ofAgents || max(inRuns, ofAgents) > tree.limit {
		t.Fatalf("seed %d: %d and %d processes are counted, %d and %d there", seed, tree.inRuns, tree.ofAgents, inRuns,
			ofAgents)
	}
	for key, a := range tree.agents {
		if tree.processes[key] == nil {
			t.Fatalf("seed %d: agent %s is no process", seed, key)
		}
		for of, p := range a.processes {
			if tree.processes[of] != p {
				t.Fatalf("seed %d: agent %s has %s, which is gone", seed, key, of)
			}
		}
	}
}

func TestDelegatesNestSoDeepOnly(t *testing.T) {
	s := &story{Tree: New(4)}
	s.runs("0", "cd", "BRIDGE", "0", root)
	for i := 1; i < 1000; i++ {
		before, key := fmt.Sprint(i-1), fmt.Sprint(i)
		s.child(key, before, "PTP", key).exit(before)
	}
	deep := 0
	for r := s.Get("999").Run; r.Around != nil; r = r.Around {
		deep++
	}
	if s.Len() != 1 || deep != maxNested {
		t.Errorf("%d processes, and delegates nest %d deep", s.Len(), deep)
	}
}
