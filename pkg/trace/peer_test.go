package trace

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// served is a bridge ADD whose agent runs a command for it and one for nobody knows whom,
// and changes two interfaces.
func served() *timeline.Operation {
	return busy(func(op *timeline.Operation) {
		other := timeline.Key{Kind: timeline.Setup, ContainerID: "c9", First: "9", Start: 3}
		certain := &timeline.Attribution{Evidence: timeline.Certain}
		candidate := &timeline.Attribution{Evidence: timeline.Candidate, Others: []timeline.Key{other}}
		did := func(name string, by *timeline.Attribution) *timeline.Image {
			return &timeline.Image{Program: timeline.Program{Process: event.Process("p-" + name), Name: name}, Exit: timeline.Exit{Ended: true}, Start: 32, End: 36, Attribution: by}
		}
		attributed := func(f *timeline.Fact, a *timeline.Attribution) []*timeline.Fact {
			f.Attribution = a
			return []*timeline.Fact{f}
		}
		bridge(op).Facts, bridge(op).Activity, bridge(op).Run = nil, timeline.Activity{}, &timeline.Run{Plugin: "bridge", Command: "ADD"}
		bridge(op).Facts = []*timeline.Fact{{When: between(31, 39), What: &timeline.Connection{
			Network: "unix", Address: "/run/agent.sock", Tries: 1,
			Work: &timeline.Work{
				CPU: 4e6, Channel: "futex_do_wait", Gone: 38,
				Own: &timeline.Image{
					Program:  timeline.Program{Name: "agentd"},
					Exit:     timeline.Exit{Ended: true},
					Start:    31,
					End:      39,
					Children: []*timeline.Image{did("ovs-vsctl", certain)},
					Activity: timeline.Activity{Tallies: [timeline.FactKinds]timeline.Tally{timeline.FactQuery: {Count: 2, Time: 1}}},
					Facts:    attributed(asked("RTM_NEWLINK", between(32, 33), named("pod-1")), certain),
				},
				Shared: &timeline.Image{
					Program:  timeline.Program{Name: "agentd"},
					Exit:     timeline.Exit{Ended: true},
					Start:    31,
					End:      39,
					Children: []*timeline.Image{did("ipset", &timeline.Attribution{Evidence: timeline.Candidate, Periodic: true, Others: candidate.Others})},
					Facts:    attributed(asked("RTM_NEWROUTE", between(32, 38)), candidate),
				},
			},
		}}}
	})
}

func TestWhatAnAgentDid(t *testing.T) {
	spans := build(served())
	got := drawn(spans, "cniscope.attribution", "cniscope.periodic", "cniscope.other_calls", "cniscope.agent_cpu_ms", "cniscope.agent_waits_in", "cniscope.queries")
	want := `pod network setup 10-40
  CNI ADD 10-40
    bridge ADD 10-40
      call agent 31-39 double_value:4 futex_do_wait int_value:2
        * the agent ended 38
        ovs-vsctl 32-36 certain
        configure interface 32-33
          * netlink RTM_NEWLINK 33 certain
        ipset 32-36 candidate bool_value:true int_value:1
        netlink RTM_NEWROUTE 32-38 candidate int_value:1
      iptables 20-30
        * netlink NFT_MSG_NEWRULE 22
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	seen := map[string]bool{}
	for _, s := range spans {
		if id := string(s.SpanId); seen[id] {
			t.Errorf("%s has the id of another span", s.Name)
		} else {
			seen[id] = true
		}
		linked := 0
		for _, l := range s.Links {
			if l.Attributes[0].Value.GetStringValue() == "may be for this call" {
				linked++
			}
		}
		if want := map[string]int{"ipset": 1, "netlink RTM_NEWROUTE": 1}[s.Name]; linked != want {
			t.Errorf("%s links to %d other calls, want %d", s.Name, linked, want)
		}
	}
}
