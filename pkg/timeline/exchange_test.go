package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// asks reports an exchange; -1 is pending.
func (s *story) asks(start, end int64, process, key string, change ...func(*event.Exchange)) *story {
	x := &event.Exchange{
		Process: event.Process(process), Start: start * ms, Socket: key, Network: "unix",
		Address: "/run/" + key, Thread: 7,
	}
	for _, f := range change {
		f(x)
	}
	return s.at(end, x)
}

func pending(x *event.Exchange) { x.Pending, x.Thread = true, 0 }
func unasked(x *event.Exchange) { x.Unasked = true }
func last(at int64) func(*event.Exchange) {
	return func(x *event.Exchange) { x.Last = at * ms }
}
func failed(x *event.Exchange) { x.Error = "closed" }
func with(process string) func(*event.Exchange) {
	return func(x *event.Exchange) {
		x.Peer = &event.Actor{Process: event.Process(process), PID: 5, Name: process + "d"}
	}
}

// found reports a sample of an agent.
func (s *story) found(at int64, process string, state event.AgentState, channel string) *story {
	return s.at(at, &event.Agent{Process: event.Process(process), State: state, Channel: channel})
}

// Peers that agents waited for, indented by depth.
func behind(im *model.Image, depth int) string {
	var b strings.Builder
	for f, c := range model.Each[*model.Connection](im.Facts) {
		fmt.Fprintf(&b, "%s%d-%d %s", strings.Repeat("  ", depth), f.When.Start/ms, f.When.End/ms, c.Address)
		if c.Agent != nil {
			b.WriteString(" " + c.Agent.Name)
		}
		if x := c.Exchange; x != nil {
			if x.Asked != 0 {
				fmt.Fprintf(&b, " asked at %d", x.Asked/ms)
			}
			for _, mark := range []struct {
				is   bool
				name string
			}{{x.Unasked, "unasked"}, {x.Clipped, "clipped"}, {x.Receipt, "receipt"}, {x.Unended, "unended"}, {
				c.Error != "",
				c.Error,
			}} {
				if mark.is {
					b.WriteString(" " + mark.name)
				}
			}
		}
		if f.Attribution != nil {
			b.WriteString(" " + string(f.Attribution.Evidence))
			for _, other := range f.Attribution.Others {
				b.WriteString(" or " + other.ContainerID)
			}
		}
		if c.Work == nil {
			b.WriteString("\n")
			continue
		}
		for _, one := range c.Work.States {
			fmt.Fprintf(&b, ", %s %d-%d", one.State, one.Start/ms, one.End/ms)
		}
		for _, m := range c.Work.Meanwhile {
			fmt.Fprintf(&b, "; meanwhile %s %d-%d", saidOfDeed(m), m.When.Start/ms, m.When.End/ms)
		}
		b.WriteString("\n" + behind(c.Work.Own, depth+1) + behind(c.Work.Shared, depth+1))
	}
	return b.String()
}

// A connection that an agent still has open lasts until the operation ends, whatever else it asks.
func TestAnOpenDialBesideAnExchange(t *testing.T) {
	for name, beside := range map[string]func(*story){
		"alone":               func(*story) {},
		"beside an exchange":  func(s *story) { s.asks(10, 30, "a", "db", pending) },
		"beside two of these": func(s *story) { s.asks(10, 30, "a", "db", pending).asks(12, 20, "a", "db2", pending) },
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t).plugin(0, "p", "ADD", "antrea").calls(2, "p", "s1")
			s.at(3, &event.Accept{Socket: "s1", Agent: event.Actor{Process: "a", PID: 9, Name: "agentd"}})
			beside(s)
			s.at(41, &event.Connect{Process: "a", Start: 40 * ms, Socket: "s9", Network: "tcp", Address: "10.0.0.1:443"})
			s.at(100, &event.Close{Process: "p", Socket: "s1"}).exit(100, "p").end()
			harness.Equal(t, held(s.line.agents, "known"), 0, "agents that are known after the last call")
			if got, want := behind(s.closed[0].Calls[0].Runs[0], 0), "40-100 10.0.0.1:443"; !strings.Contains(got, want) {
				t.Errorf("got\n%swant a line with %q", got, want)
			}
		})
	}
}

func saidOfDeed(m model.Meanwhile) (s string) {
	switch {
	case m.Image != nil:
		s = m.Image.Name
	default:
		if c, is := m.Fact.What.(*model.Connection); is {
			s = c.Address
		}
	}
	s += " " + string(m.Evidence)
	if m.Perhaps {
		s += " for this"
	}
	for _, other := range m.Others {
		s += " or " + other.ContainerID
	}
	return s
}

func TestWhatAnAgentWaitsForOnStandingStreams(t *testing.T) {
	stories{
		"one that is over when it is told": {
			func(s *story) { s.asks(10, 30, "a", "db", with("d")) },
			"2-100 /run/agent.sock agentd\n  10-30 /run/db dd candidate\n",
		},
		"one that is pending, then over": {func(s *story) {
			s.asks(10, 110, "a", "db", pending).asks(10, 210, "a", "db", pending, with("d")).asks(10, 300, "a", "db", with("d"))
		}, "2-100 /run/agent.sock agentd\n  10-300 /run/db dd candidate\n"},
		"one that never ends lasts as long as it was told": {
			func(s *story) { s.asks(10, 90, "a", "db", pending) },
			"2-100 /run/agent.sock agentd\n  10-90 /run/db unended candidate\n",
		},
		"one that ends in vain": {
			func(s *story) { s.asks(10, 70, "a", "db", pending).asks(10, 80, "a", "db", failed) },
			"2-100 /run/agent.sock agentd\n  10-80 /run/db closed candidate\n",
		},
		"what is too short": {
			func(s *story) { s.at(10, &event.Exchange{Process: "a", Socket: "db", Start: 10*ms - 1000}) },
			"2-100 /run/agent.sock agentd\n",
		},
		"what began before anybody called is marked": {
			func(s *story) { s.asks(-50, 30, "a", "db", with("d")) },
			"2-100 /run/agent.sock agentd\n  2-30 /run/db dd clipped candidate\n",
		},
		"what began before anybody called may be in everybody's way": {func(s *story) {
			s.at(0, &event.Agent{Process: "a"}).asks(1, 60, "a", "db", pending, with("d")).
				plugin(65, "b2", "ADD", "net", for2).calls(66, "b2", "s2").asks(1, 80, "a", "db").exit(90, "b2")
		}, "2-100 /run/agent.sock agentd\n  2-80 /run/db dd clipped candidate\n"},
		"what began before anybody called, and is asked for once more": {func(s *story) {
			s.asks(-50, 30, "a", "db", pending, with("d"), last(-10)).asks(-50, 40, "a", "db", pending, last(20)).
				asks(-50, 60, "a", "db", last(50))
		}, "2-100 /run/agent.sock agentd\n  2-60 /run/db dd asked at 20 clipped candidate\n"},
		"what was read was no answer": {func(s *story) {
			s.asks(10, 60, "a", "db", pending, unasked, with("d")).found(60, "d", event.AgentStopped, "").
				found(80, "d", event.AgentStopped, "").asks(10, 90, "a", "db", unasked)
		}, "2-100 /run/agent.sock agentd\n  10-90 /run/db dd unasked candidate, stopped 60-80\n"},
		"who stands still speaks again on another stream": {
			func(s *story) {
				s.asks(0, 20, "a", "db", pending, with("d")).asks(0, 70, "a", "db", pending, with("d")).
					asks(-9, 60, "a", "db2", unasked, with("d"))
			},
			"2-100 /run/agent.sock agentd\n  2-60 /run/db dd clipped candidate\n  2-60 /run/db2 dd unasked clipped candidate\n",
		},
		"who stood still was let go of before its answer was read": {
			func(s *story) {
				s.asks(0, 20, "a", "db", pending, with("d")).asks(0, 70, "a", "db", pending, with("d")).
					asks(0, 110, "a", "db", with("d"), func(x *event.Exchange) { x.Error = "unfollowed" }).
					asks(0, 85, "a", "db", unasked, with("d"))
			},
			"2-100 /run/agent.sock agentd\n  2-70 /run/db dd clipped unfollowed candidate\n  2-85 /run/db dd unasked clipped candidate\n",
		},
		"nobody knows when it began": {
			func(s *story) { s.asks(0, 30, "a", "db") },
			"2-100 /run/agent.sock agentd\n  2-30 /run/db clipped candidate\n",
		},
		"it spoke by itself": {
			func(s *story) { s.asks(-50, 30, "a", "db", unasked) },
			"2-100 /run/agent.sock agentd\n  2-30 /run/db unasked clipped candidate\n",
		},
		"a receipt of what it spoke by itself": {
			func(s *story) {
				s.asks(5, 10, "a", "db", unasked).asks(11, 60, "a", "db", pending, with("d")).asks(11, 80, "a", "db", with("d")).
					asks(90, 95, "a", "db")
			},
			"2-100 /run/agent.sock agentd\n  5-10 /run/db unasked candidate\n  11-80 /run/db dd receipt candidate\n  90-95 /run/db candidate\n",
		},
		"a receipt, and then a question": {
			func(s *story) {
				s.asks(5, 10, "a", "db", unasked).asks(11, 60, "a", "db", pending, last(14)).
					asks(11, 70, "a", "db", pending, last(30)).asks(11, 80, "a", "db", last(70))
			},
			"2-100 /run/agent.sock agentd\n  5-10 /run/db unasked candidate\n  11-80 /run/db asked at 30 receipt candidate\n",
		},
		"of an answer there is none": {
			func(s *story) { s.asks(5, 10, "a", "db").asks(11, 80, "a", "db", with("d")) },
			"2-100 /run/agent.sock agentd\n  5-10 /run/db candidate\n  11-80 /run/db dd candidate\n",
		},
		"the peer waits in its turn": {func(s *story) {
			s.asks(10, 60, "a", "db", pending, with("d")).asks(20, 80, "d", "disk", pending, with("e")).
				asks(20, 85, "d", "disk").asks(10, 90, "a", "db", with("d"))
		}, "2-100 /run/agent.sock agentd\n  10-90 /run/db dd candidate\n    20-85 /run/disk ed candidate\n"},
		"on a connection that it made for the call": {
			func(s *story) {
				s.dial(8, 8, "a", "db", "").at(9, &event.Accept{Socket: "db", Agent: event.Actor{Process: "d", Name: "dd"}})
				s.asks(10, 60, "a", "db", pending, with("d")).asks(20, 80, "d", "disk", with("e")).asks(10, 90, "a", "db")
			},
			"2-100 /run/agent.sock agentd\n  8-1200 /run/agent.sock dd candidate\n  10-90 /run/db dd candidate\n    20-80 /run/disk ed candidate\n",
		},
		"one in vain is no attempt to connect": {func(s *story) {
			s.asks(10, 80, "a", "db", failed).
				at(90, &event.Connect{Process: "a", Start: 90 * ms, Socket: "n", Network: "unix", Address: "/run/db"})
		}, "2-100 /run/agent.sock agentd\n  10-80 /run/db closed candidate\n  90-1200 /run/db candidate\n"},
		"two, of which the first's end was not told": {func(s *story) {
			s.asks(10, 40, "a", "db", pending).asks(50, 80, "a", "db", pending).asks(50, 90, "a", "db")
		}, "2-100 /run/agent.sock agentd\n  10-40 /run/db candidate\n  50-90 /run/db candidate\n"},
		"two that wait for one another": {
			func(s *story) {
				s.asks(10, 60, "a", "db", pending, with("d")).asks(20, 70, "d", "db", pending, with("a")).
					asks(30, 80, "a", "back", pending, with("d"))
			},
			"2-100 /run/agent.sock agentd\n  10-60 /run/db dd unended candidate\n    20-70 /run/db ad unended candidate\n  30-80 /run/back dd unended candidate\n",
		},
		"what the peer was found doing": {func(s *story) {
			s.asks(10, 60, "a", "db", pending, with("d")).found(20, "d", event.AgentStopped, "do_signal_stop").
				found(40, "d", event.AgentStopped, "do_signal_stop").found(60, "d", event.AgentIdle, "").asks(10, 90, "a", "db")
		}, "2-100 /run/agent.sock agentd\n  10-90 /run/db dd candidate, stopped 20-50, idle 50-60\n"},
		"until the peer ends, although the asker goes on": {func(s *story) {
			s.asks(10, 40, "a", "db", pending, with("d")).exit(50, "d").asks(10, 70, "a", "db", pending, with("d")).
				asks(10, 80, "a", "db", with("d"), func(x *event.Exchange) { x.Error = "EOF" })
		}, "2-100 /run/agent.sock agentd\n  10-50 /run/db dd EOF candidate\n"},
		"of one that stood still when it ended, too": {func(s *story) {
			s.asks(0, 20, "a", "db", pending, with("d")).exit(50, "d").asks(0, 70, "a", "db", pending, with("d"))
		}, "2-100 /run/agent.sock agentd\n  2-50 /run/db dd clipped candidate\n"},
		"control: another process ends": {func(s *story) {
			s.asks(10, 40, "a", "db", pending, with("d")).exit(50, "e").asks(10, 70, "a", "db", pending, with("d")).
				asks(10, 80, "a", "db", with("d"))
		}, "2-100 /run/agent.sock agentd\n  10-80 /run/db dd candidate\n"},
		"of two calls nobody knows for which": {
			func(s *story) {
				s.plugin(4, "b2", "ADD", "net", for2).calls(5, "b2", "s2").asks(10, 60, "a", "db", with("d")).exit(70, "b2")
			},
			"2-100 /run/agent.sock agentd; meanwhile /run/db candidate for this or c2 10-60\n  10-60 /run/db dd candidate or c2\n",
		},
		"a call that came later has nothing to do with it": {func(s *story) {
			s.asks(10, 60, "a", "db", pending, with("d")).plugin(65, "b2", "ADD", "net", for2).calls(66, "b2", "s2").
				asks(10, 80, "a", "db").exit(90, "b2")
		}, "2-100 /run/agent.sock agentd\n  10-80 /run/db dd candidate\n"},
	}.each(t, func(t *testing.T) *story {
		return looked(t).plugin(0, "b", "ADD", "net").calls(2, "b", "s1")
	}, func(s *story) (got string) {
		s.exit(100, "b").tick(1200).tick(30000).end().over()
		for _, op := range s.closed {
			if op.ContainerID == "c1" {
				got = behind(op.Calls[0].Runs[0], 0)
			}
		}
		harness.Equal(s.t, held(s.line.connections, "pending"), 0, "pending exchanges")
		return got
	})
}

// Also while its operation continues.
func TestAPeerOfAnotherCallsAgentIsKnown(t *testing.T) {
	s := tell(t).plugin(0, "b", "ADD", "net").calls(2, "b", "s1").plugin(3, "b2", "ADD", "net", for2).calls(4, "b2", "s2").
		asks(10, 60, "a", "db", pending, with("d")).asks(12, 63, "d", "disk", pending, with("e")).
		found(20, "e", event.AgentStopped, "").found(90, "e", event.AgentStopped, "").exit(100, "b2").tick(1200)
	if len(s.closed) != 1 || s.closed[0].ContainerID != "c2" {
		t.Fatalf("%d operations are over", len(s.closed))
	}
	for _, m := range s.closed[0].Calls[0].Runs[0].Facts[0].What.(*model.Connection).Work.Meanwhile {
		for _, c := range model.Each[*model.Connection](m.Fact.What.(*model.Connection).Work.Own.Facts) {
			if spent := c.Work.Spent(model.Interval{Start: 0, End: 100 * ms}); len(spent) != 1 ||
				spent[0].State != event.AgentStopped {
				t.Errorf("%s was found %v", c.Agent.Name, spent)
			}
			return
		}
	}
	t.Error("the peer's peer is not known")
}

// Of many things that an agent does at a time, the longest are known to who waits for it.
func TestWhatAnAgentDoesIsBounded(t *testing.T) {
	s := looked(t)
	s.line.options.Facts = 1000
	s.plugin(0, "b", "ADD", "net").calls(2, "b", "s1").plugin(3, "b2", "ADD", "net", for2).calls(4, "b2", "s2")
	at := int64(10)
	for i := range int64(300) {
		took := 2 + i%3
		if i == 7 {
			took = 50
		}
		s.asks(at, at+took, "a", fmt.Sprint("db", i), with("d"))
		at += took + 1
	}
	s.exit(at, "b").exit(at, "b2").tick(at + 30_000).end()
	m := s.closed[0].Calls[0].Runs[0].Facts[0].What.(*model.Connection).Work.Meanwhile
	harness.Equal(t, len(m), 16, "known")
	harness.Equal(t, m[0].When.Took()/ms, 50, "ms of the longest")
	for _, one := range m[1:] {
		harness.Equal(t, one.When.Took()/ms, 4, "ms of the next ones")
	}
}

// What an agent already waits for also delays later callers.
func TestWhatBeganBeforeAnybodyCalled(t *testing.T) {
	s := tell(t).at(0, &event.Agent{Process: "a"}).plugin(1, "b", "ADD", "net").calls(2, "b", "s1").
		asks(1, 60, "a", "db", pending, with("d")).
		plugin(65, "b2", "ADD", "net", for2).calls(66, "b2", "s2").asks(1, 160, "a", "db", pending).exit(170, "b").
		exit(171, "b2").tick(30000).end()
	for _, op := range s.closed {
		w := op.Calls[0].Runs[0].Facts[0].What.(*model.Connection).Work
		if op.ContainerID == "c2" && (len(w.Meanwhile) != 1 ||
			saidOfDeed(w.Meanwhile[0]) != "/run/db candidate for this or c1") {
			t.Errorf("%+v", w.Meanwhile)
		}
	}
}

// A wait that goes on when its first caller has its answer is the next caller's.
func TestAWaitThatGoesOnForTheNextCaller(t *testing.T) {
	s := tell(t).at(0, &event.Agent{Process: "a"}).plugin(1, "b", "ADD", "net").calls(2, "b", "s1").
		asks(10, 60, "a", "db", pending, with("d")).hangUp(70, "b", "s1").plugin(75, "b2", "ADD", "net", for2).calls(76, "b2", "s2").
		asks(10, 160, "a", "db", pending, with("d")).exit(170, "b").exit(171, "b2").tick(30000).end()
	got := map[string]string{}
	for _, op := range s.closed {
		got[op.ContainerID] = behind(op.Calls[0].Runs[0], 0)
	}
	harness.DeepEqual(t, got, map[string]string{
		"c1": "2-70 /run/agent.sock agentd\n  10-60 /run/db dd unended candidate\n",
		"c2": "76-171 /run/agent.sock agentd\n  76-160 /run/db dd clipped unended candidate\n",
	})
}

func TestWhatOthersMayHaveBeenFor(t *testing.T) {
	s := tell(t).plugin(0, "b", "ADD", "net").calls(2, "b", "s1").plugin(3, "b2", "ADD", "net", for2).calls(4, "b2", "s2").
		command(10, "w", "a", "clang").exit(60, "w").command(61, "v", "a", "ip", mentions("c1")).exit(70, "v").
		plugin(71, "b3", "ADD", "net", container("c3")).calls(72, "b3", "s3").
		exit(80, "b3").exit(90, "b").exit(91, "b2").tick(30000).end()
	got := map[string]string{}
	for _, op := range s.closed {
		for _, m := range op.Calls[0].Runs[0].Facts[0].What.(*model.Connection).Work.Meanwhile {
			got[op.ContainerID] += fmt.Sprint(saidOfDeed(m), " ", m.When.Start/ms, "-", m.When.End/ms, ";")
		}
	}
	want := map[string]string{
		"c1": "clang candidate for this or c2 10-60;",
		"c2": "clang candidate for this or c1 10-60;ip certain or c1 61-70;",
	}
	harness.Equal(t, fmt.Sprint(got), fmt.Sprint(want))
}
