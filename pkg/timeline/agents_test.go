package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// Of another sandbox.
func for2(e *event.Exec) { e.Call = &event.Call{Command: "ADD", ContainerID: "c2", IfName: "eth0"} }

func mentions(ids ...string) func(*event.Exec) {
	return func(e *event.Exec) { e.Mentions = ids }
}

// Plugin calls server "a", which answers.
func (s *story) calls(at int64, process, key string) *story {
	s.dial(at, at, process, key, "")
	return s.at(at, &event.Accept{Socket: key, Agent: event.Actor{Process: "a", PID: 9, Name: "agentd"}})
}

// No accept was seen; "l" is the listener.
func (s *story) listens(at int64, key string) *story {
	return s.at(at, &event.Accept{Socket: key, Agent: event.Actor{Process: "l", PID: 8, Name: "listener"}, Listens: true})
}

// What servers did, per closed operation.
func (s *story) done() string {
	var lines []string
	for _, op := range s.closed {
		for _, call := range op.Calls {
			lines = append(lines, workOf(op.ContainerID, call.Runs[0], "")...)
		}
	}
	return strings.Join(lines, "; ")
}

func workOf(container string, by *model.Image, of string) (lines []string) {
	for _, c := range model.Each[*model.Connection](by.Facts) {
		if c.Work == nil {
			continue
		}
		for _, im := range c.Work.Own.Children {
			lines = append(lines, container+": "+drawnWork(im)+of)
		}
		for _, im := range c.Work.Shared.Children {
			lines = append(lines, container+": shared "+drawnWork(im)+of)
		}
		lines = append(lines, workOf(container, c.Work.Own, ", of "+c.Work.Own.Name+"'s server")...)
	}
	return lines
}

func drawnWork(im *model.Image) string {
	line := im.Name + " " + string(im.Attribution.Evidence)
	if im.Attribution.Periodic {
		line += " periodic"
	}
	for _, other := range im.Attribution.Others {
		line += " or " + other.ContainerID
	}
	for _, child := range im.Children {
		line += " > " + child.Name
	}
	return line
}

func TestWhatAServerRunsForACall(t *testing.T) {
	stories{
		"alone in time is a candidate": {
			func(s *story) { s.command(10, "w", "a", "powershell").exit(20, "w") },
			"c1: powershell candidate",
		},
		"what it mentions is certain": {
			func(s *story) { s.command(10, "w", "a", "ovs-vsctl", mentions("c1")).exit(20, "w") },
			"c1: ovs-vsctl certain",
		},
		"what mentions nobody who calls is nobody's": {
			func(s *story) { s.command(10, "w", "a", "ovs-vsctl", mentions("c9")).exit(20, "w") },
			"",
		},
		"what it runs in its turn belongs to it": {func(s *story) {
			s.command(10, "w", "a", "sh", mentions("c1")).command(11, "v", "w", "sleep").exit(19, "v").exit(20, "w")
		}, "c1: sh certain > sleep"},
		"a plugin that it runs is the call's whose container it is told, and so is what that starts": {func(s *story) {
			s.plugin(5, "b2", "ADD", "net", for2).calls(6, "b2", "s2")
			s.plugin(10, "h", "ADD", "host-local", by("a")).command(11, "x", "h", "ip").exit(12, "x").exit(20, "h").
				exit(40, "b2")
		}, "c1: host-local certain > ip"},
		"a DEL by which it undoes its part of an ADD is the ADD's": {func(s *story) {
			s.plugin(10, "h", "ADD", "host-local", by("a")).exit(12, "h", 1).plugin(13, "h2", "DEL", "host-local", by("a")).
				exit(20, "h2")
		}, "c1: host-local certain; c1: host-local certain"},
		"control: a DEL after the connection is a call of its own": {func(s *story) {
			s.plugin(10, "h", "ADD", "host-local", by("a")).exit(12, "h").hangUp(13, "b", "s1").
				plugin(14, "h2", "DEL", "host-local", by("a")).exit(20, "h2")
		}, "c1: host-local certain"},
		"of a call's open connections, it is of the last": {func(s *story) {
			s.calls(5, "b", "s2").plugin(6, "p", "ADD", "portmap", by("a")).exit(7, "p").hangUp(8, "b", "s2").
				plugin(10, "h", "ADD", "host-local", by("a")).exit(12, "h")
		}, "c1: host-local certain; c1: portmap certain"},
		"so is one that a helper of the agent becomes": {func(s *story) {
			s.command(10, "n", "a", "nsenter").plugin(11, "n", "ADD", "host-local", by("a")).exit(20, "n")
		}, "c1: nsenter candidate; c1: host-local certain"},
		"of two who call, overlap says nothing": {func(s *story) {
			s.plugin(5, "b2", "ADD", "net", for2).calls(6, "b2", "s2")
			s.command(10, "w", "a", "ipset").exit(20, "w").exit(40, "b2")
		}, "c1: shared ipset candidate or c2"},
		"of two who call, evidence does": {func(s *story) {
			s.plugin(5, "b2", "ADD", "net", for2).calls(6, "b2", "s2")
			s.command(10, "w", "a", "ipset", mentions("c2")).exit(20, "w").exit(40, "b2")
		}, "c2: ipset certain"},
		"after the call is over, evidence still does": {func(s *story) {
			s.hangUp(8, "b", "s1").command(10, "w", "a", "ovs-vsctl", mentions("c1")).exit(20, "w")
		}, "c1: ovs-vsctl certain"},
		"what it runs while nobody calls it is periodic": {func(s *story) {
			s.hangUp(8, "b", "s1").command(10, "w", "a", "conntrack").exit(11, "w")
			s.calls(12, "b", "s3").command(13, "v", "a", "conntrack").exit(14, "v")
		}, "c1: shared conntrack candidate periodic"},
		"a subshell that it forks is followed": {func(s *story) {
			s.at(9, &event.Fork{Process: "f", Parent: "a"}).command(10, "w", "f", "tc").exit(20, "w").exit(21, "f")
		}, "c1: tc candidate"},
		"who listens serves, if nobody accepts": {func(s *story) {
			s.dial(3, 3, "b", "s2", "").listens(60, "s2").command(70, "w", "l", "tc").exit(80, "w")
		}, "c1: tc candidate"},
		"who accepts after all serves instead of who listens": {func(s *story) {
			s.dial(3, 3, "b", "s2", "").listens(60, "s2").command(70, "w", "l", "tc").exit(80, "w")
			s.at(90, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "m", PID: 7}})
			s.command(91, "v", "l", "ip").exit(92, "v").command(93, "u", "m", "ipset").exit(94, "u")
		}, "c1: tc candidate; c1: ipset candidate"},
		"what a server's server runs, if that is followed, too": {func(s *story) {
			s.dial(11, 11, "a", "s3", "").at(11, &event.Accept{Socket: "s3", Agent: event.Actor{Process: "d", PID: 6}})
			s.command(12, "w", "d", "modprobe").exit(13, "w")
			s.dial(14, 14, "d", "s4", "") // stays open
		}, "c1: modprobe candidate, of agentd's server"},
		"what the eighth server in a row runs, not the ninth": {func(s *story) {
			for i, caller := range []string{"a", "a2", "a3", "a4", "a5", "a6", "a7", "a8"} {
				socket, next := fmt.Sprint("to", i), fmt.Sprint("a", i+2)
				agent := event.Actor{Process: event.Process(next), Name: next}
				s.dial(11, 11, caller, socket, "").at(11, &event.Accept{Socket: socket, Agent: agent})
			}
			s.command(12, "w", "a8", "tc").exit(13, "w").command(14, "v", "a9", "ip").exit(15, "v")
		}, "c1: tc candidate, of a7's server"},
		"a helper daemon is nobody's when its server is followed no more": {func(s *story) {
			s.hangUp(8, "b", "s1").command(10, "h", "a", "helperd").at(1100, &event.Agent{Process: "a", Over: true})
			s.command(1101, "w", "h", "tc").exit(1102, "w")
		}, ""},
		"a server that ends leaves nothing": {
			func(s *story) { s.exit(9, "a").command(10, "w", "a", "tc").exit(20, "w") },
			"",
		},
	}.each(t, func(t *testing.T) *story {
		return tell(t).plugin(0, "b", "ADD", "net").calls(2, "b", "s1")
	}, func(s *story) string {
		s.exit(100, "b").tick(1200).tick(30000).end().over()
		harness.Equal(s.t, len(s.closed[0].Calls[0].Runs), 1, "runs beside one another")
		if n := s.line.tree.Len(); n > held(s.line.agents, "known") {
			s.t.Errorf("%d processes are left", n)
		}
		return s.done()
	})
}

func TestWhatAServerAsksOfTheKernel(t *testing.T) {
	s := tell(t)
	s.plugin(0, "b", "ADD", "net").calls(2, "b", "s1").plugin(3, "b2", "ADD", "net", for2).calls(4, "b2", "s2")
	for i, m := range [][]string{{"c1"}, {"c2"}, nil, {"c1", "c2"}} {
		s.at(int64(10+i), &event.Request{
			Process: "a", Start: int64(10+i)*ms - 1, Name: fmt.Sprint("RTM_", i),
			Sequence: uint32(i), Mentions: m,
		})
	}
	s.at(20, &event.Answer{Process: "a", Sequence: 1, Error: "EPERM"})
	s.at(20, &event.Answer{Process: "a", Sequence: 2, Error: "EEXIST"})
	s.exit(50, "b").exit(51, "b2").tick(30000).end()
	got := ""
	for _, op := range s.closed {
		w := op.Calls[0].Runs[0].Facts[0].What.(*model.Connection).Work
		for where, im := range map[string]*model.Image{"own": w.Own, "shared": w.Shared} {
			for f, r := range model.Each[*model.Request](im.Facts) {
				got += fmt.Sprint(op.ContainerID, " ", where, " ", r.Name, " ", f.Attribution.Evidence, len(f.Attribution.Others),
					r.Errno(), "; ")
			}
		}
	}
	for _, want := range []string{
		"c1 own RTM_0 certain0;", "c2 own RTM_1 certain0EPERM;",
		"c1 shared RTM_2 candidate1EEXIST;", "c1 shared RTM_3 candidate1;",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not among %s", want, got)
		}
	}
}

func TestServersThatNobodyCallsMakeRoom(t *testing.T) {
	s := tell(t)
	for i := range 100 {
		s.at(int64(i), &event.Agent{Process: event.Process(fmt.Sprint("a", i))})
	}
	s.plugin(200, "b", "ADD", "net").calls(201, "b", "s1").command(202, "w", "a", "tc", mentions("c1")).exit(203, "w").
		exit(210, "b").tick(30000).end()
	if got, want := s.done(), "c1: tc certain"; got != want || held(s.line.agents, "known") > 8 {
		t.Errorf("%s, want %s; %d servers", got, want, held(s.line.agents, "known"))
	}
}

// What an agent also does without callers is not attributed to the only call: programs that it ran before it was
// followed, and changes long after the last call. Changes soon after a call may be for it.
func TestWhatAnAgentDoesByItself(t *testing.T) {
	for name, test := range map[string]struct {
		before int64 // since the last call
		want   string
	}{
		"a while after a call": {600, "candidate periodic, candidate periodic, certain"},
		"soon after a call":    {100, "candidate periodic, candidate, certain"},
	} {
		s := looked(t)
		s.plugin(0, "b", "ADD", "net").calls(2, "b", "s1").hangUp(8, "b", "s1")
		drop := func(at int64, mentions ...string) {
			s.ask(at, at, "a", "RTM_DELRULE", func(r *event.Request) { r.Verb, r.Mentions = event.VerbDelete, mentions })
		}
		drop(8 + test.before)
		s.at(2000, &event.Agent{Process: "a", Programs: []string{"conntrack-resto"}}).calls(2001, "b", "s2")
		s.command(2002, "w", "a", "conntrack-restore").exit(2003, "w")
		drop(2004)
		drop(2005, "c1")
		s.hangUp(2010, "b", "s2").exit(2020, "b").tick(9000)
		var got []string
		for _, c := range model.Each[*model.Connection](s.closed[0].Calls[0].Runs[0].Facts) {
			if c == nil || c.Work == nil {
				continue
			}
			for _, im := range []*model.Image{c.Work.Shared, c.Work.Own} {
				for _, child := range im.Children {
					got = append(got, saidOfClaim(child.Attribution))
				}
				for f := range model.Each[*model.Request](im.Facts) {
					got = append(got, saidOfClaim(f.Attribution))
				}
			}
		}
		harness.Equal(t, strings.Join(got, ", "), test.want, name)
	}
}

func saidOfClaim(a *model.Attribution) string {
	if a.Periodic {
		return string(a.Evidence) + " periodic"
	}
	return string(a.Evidence)
}

func TestAnAgentThatEnds(t *testing.T) {
	stories{
		"for want of memory, told before": {
			func(s *story) { s.at(20, &event.Agent{Process: "a", Killed: "OOM"}).exit(21, "a") },
			"gone 21 OOM",
		},
		"for want of memory, told after": {
			func(s *story) { s.exit(21, "a").at(22, &event.Agent{Process: "a", Killed: "OOM", Over: true}) },
			"gone 21 OOM",
		},
		"and comes back at its address": {func(s *story) {
			s.exit(21, "a").hangUp(22, "b", "s1").dial(40, 40, "b", "s2", "").
				at(41, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "a2", PID: 10, Name: "agentd"}})
		}, "gone 21 back 40 as agentd"},
		"and another program comes to its address": {func(s *story) {
			s.exit(21, "a").hangUp(22, "b", "s1").dial(40, 40, "b", "s2", "").
				at(41, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "a2", PID: 10, Name: "proxyd"}})
		}, "gone 21 back 40 as proxyd"},
		"and another one comes later": {func(s *story) {
			s.exit(21, "a").hangUp(22, "b", "s1").dial(40, 40, "b", "s2", "").
				at(41, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "a2", PID: 10, Name: "agentd"}}).
				dial(50, 50, "b", "s3", "").at(51, &event.Accept{Socket: "s3", Agent: event.Actor{Process: "a3", PID: 11, Name: "agentd"}})
		}, "gone 21 back 40 as agentd"},
		"and another program is called elsewhere": {func(s *story) {
			s.exit(21, "a").at(40, &event.Connect{Process: "b", Start: 40 * ms, Socket: "s2", Network: "unix", Address: "/run/another"}).
				at(41, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "a2", PID: 10, Name: "proxyd"}})
		}, "gone 21"},
		"and comes back elsewhere": {func(s *story) {
			s.exit(21, "a").at(40, &event.Connect{Process: "b", Start: 40 * ms, Socket: "s2", Network: "unix", Address: "/run/another"}).
				at(41, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "a2", PID: 10, Name: "agentd"}})
		}, "gone 21 back 40 as agentd"},
		"after the call": {func(s *story) {
			s.hangUp(10, "b", "s1").exit(21, "a").dial(40, 40, "b", "s2", "").
				at(41, &event.Accept{Socket: "s2", Agent: event.Actor{Process: "a2", PID: 10, Name: "agentd"}})
		}, "gone 0"},
		"for want of memory, after the call": {
			func(s *story) {
				s.hangUp(10, "b", "s1").at(20, &event.Agent{Process: "a", Killed: "OOM"}).exit(21, "a")
			},
			"gone 0",
		},
		"as was reported too early": {func(s *story) {
			s.exit(21, "a").hangUp(22, "b", "s1").calls(40, "b", "s2")
		}, "gone 21"},
		"and only listens to nobody": {
			func(s *story) { s.exit(21, "a").dial(40, 40, "b", "s2", "").listens(41, "s2") },
			"gone 21",
		},
	}.each(t, func(t *testing.T) *story {
		return tell(t).plugin(0, "b", "ADD", "net").calls(2, "b", "s1")
	}, func(s *story) string {
		s.exit(100, "b").tick(30000).end()
		w := s.closed[0].Calls[0].Runs[0].Facts[0].What.(*model.Connection).Work
		got := strings.TrimSpace(fmt.Sprint("gone ", w.Gone/ms, " ", w.Killed))
		if w.Successor != nil {
			got += fmt.Sprint(" back ", w.Back/ms, " as ", w.Successor.Name)
		}
		harness.Equal(s.t, held(s.line.agents, "departed"), 0, "remembered agents")
		return got
	})
}
