package trace

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// served is a bridge ADD whose agent runs a confirmed and an unconfirmed command, and changes two interfaces.
func served() *model.Operation {
	return busy(func(op *model.Operation) {
		other := model.Key{Kind: model.Setup, ContainerID: "c9", First: "9", Start: 3}
		certain := &model.Attribution{Evidence: model.Certain}
		candidate := &model.Attribution{Evidence: model.Candidate, Others: []model.Key{other}}
		did := func(name string, by *model.Attribution) *model.Image {
			return &model.Image{
				Program: model.Program{Process: event.Process("p-" + name), Name: name},
				Exit:    model.Exit{Ended: true}, Start: 32, End: 36, Attribution: by,
			}
		}
		attributed := func(f *model.Fact, a *model.Attribution) []*model.Fact {
			f.Attribution = a
			return []*model.Fact{f}
		}
		own, shared := agentImage("agentd"), agentImage("agentd")
		own.Children, own.Tallies[model.FactQuery] = []*model.Image{did("ovs-vsctl", certain)}, model.Tally{Count: 2, Time: 1}
		own.Facts = attributed(asked("RTM_NEWLINK", between(32, 33), named("pod-1")), certain)
		periodic := &model.Attribution{Evidence: model.Candidate, Periodic: true, Others: candidate.Others}
		shared.Children = []*model.Image{did("ipset", periodic)}
		shared.Facts = attributed(asked("RTM_NEWROUTE", between(32, 38)), candidate)
		bridge(op).Activity, bridge(op).Run = model.Activity{}, &model.Run{Plugin: "bridge", Command: "ADD"}
		bridge(op).Facts = []*model.Fact{{When: between(31, 39), What: &model.Connection{
			Network: "unix", Address: "/run/agent.sock", Tries: 1,
			Work: &model.Work{
				CPU: 4e6, Channel: "futex_do_wait", Gone: 38,
				Own: own, Shared: shared,
			},
		}}}
	})
}

func agentImage(name string) *model.Image {
	program := model.Program{Process: event.Process(name), Name: name}
	return &model.Image{Program: program, Exit: model.Exit{Ended: true}, Start: 31, End: 39}
}

func TestWhatAnAgentDid(t *testing.T) {
	spans := build(served())
	got := drawn(spans, "cniscope.attribution", "cniscope.periodic", "cniscope.other_calls", "cniscope.agent_cpu_ms",
		"cniscope.agent_waits_in", "cniscope.queries")
	want := `pod network setup 10-40
  CNI ADD 10-40
    bridge ADD 10-40
      call agent 31-39 double_value:4 futex_do_wait int_value:2
        * the agent ended 38
        ovs-vsctl 32-36 certain
        configure interface 32-33 certain
          * netlink RTM_NEWLINK 33 certain
        ipset 32-36 candidate bool_value:true int_value:1
        netlink RTM_NEWROUTE 32-38 candidate int_value:1
      iptables 20-30
        * netlink NFT_MSG_NEWRULE 22
`
	harness.Equal(t, got, want)
	distinct(t, spans)
	for _, s := range spans {
		linked := 0
		for _, l := range s.Links {
			if l.Attributes[0].Value.GetStringValue() == "may be for this call" {
				linked++
			}
		}
		want := map[string]int{"ipset": 1, "netlink RTM_NEWROUTE": 1}[s.Name]
		harness.Equal(t, linked, want, "other calls that", s.Name, "links to")
	}
}

func TestWhomAnAgentWaitedFor(t *testing.T) {
	candidate := &model.Attribution{Evidence: model.Candidate}
	work := func(name string, facts ...*model.Fact) *model.Work {
		w := &model.Work{Own: agentImage(name), Shared: agentImage(name)}
		w.Own.Facts = facts
		return w
	}
	exchange := func(start, end int64, address, peer string, w *model.Work) *model.Fact {
		c := &model.Connection{
			Network: "unix", Address: address, Agent: &event.Actor{PID: 7, Name: peer}, Answered: true,
			Work: w, Exchange: &model.Exchange{},
		}
		return &model.Fact{When: between(start, end), What: c, Attribution: candidate}
	}
	spans := build(busy(func(op *model.Operation) {
		disk := work("diskd")
		disk.States = []model.Spell{
			{Interval: between(33, 34), State: event.AgentIdle},
			{Interval: between(34, 37), State: event.AgentStopped, Channel: "do_signal_stop"},
		}
		disk.Killed, disk.Gone, disk.Successor, disk.Back = "OOM", 37, &event.Actor{PID: 8, Name: "diskd"}, 38
		lock := &model.Fact{
			When: between(31, 36), Attribution: candidate,
			What: &model.Wait{Kind: event.WaitMutex, Name: "rtnl"},
		}
		agent := work("agentd", exchange(32, 38, "/run/db", "dbd",
			work("dbd", exchange(33, 38, "/run/disk", "diskd", disk))), lock)
		bridge(op).Activity = model.Activity{}
		bridge(op).Facts = []*model.Fact{{
			When: between(31, 39),
			What: &model.Connection{Network: "unix", Address: "/run/agent.sock", Tries: 1, Work: agent},
		}}
	}))
	got := drawn(spans, "cniscope.agent", "cniscope.standing", "cniscope.attribution", "cniscope.agent_stopped_ms",
		"cniscope.agent_waits_in", "cniscope.agent_killed", "cniscope.exchanges", "cniscope.connections")
	want := `pod network setup 10-40
  CNI ADD 10-40
    bridge ADD 10-40 int_value:1
      call agent 31-39 int_value:1
        wait for lock 31-36 candidate
        call peer 32-38 dbd bool_value:true candidate int_value:1
          call peer 33-38 diskd bool_value:true candidate double_value:3e-06 do_signal_stop OOM
            * the agent ended 37 OOM
            * another agent answers in its place 38 diskd
      iptables 20-30
        * netlink NFT_MSG_NEWRULE 22
`
	harness.Equal(t, got, want)
}

func TestARefusalIsNobodysForCertain(t *testing.T) {
	op := served()
	work := bridge(op).Facts[0].What.(*model.Connection).Work
	work.Shared.Facts = append(work.Shared.Facts, &model.Fact{
		When: between(32, 33), What: &model.Connection{Network: "unix", Address: "/run/bank.sock", Error: "ECONNREFUSED"},
		Attribution: &model.Attribution{Evidence: model.Candidate},
	})
	for _, s := range build(op) {
		for _, e := range s.Events {
			said := map[string]string{}
			for _, kv := range e.Attributes {
				said[kv.Key] = kv.Value.GetStringValue()
			}
			if e.Name == "call refused" && said["cniscope.attribution"] == "candidate" &&
				said["server.address"] == "/run/bank.sock" {
				return
			}
		}
	}
	t.Error("it is not told, or as certain")
}
