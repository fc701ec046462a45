package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func (s *story) afterwards() string {
	var all []string
	for _, a := range s.line.Pods().Afters() {
		said := fmt.Sprintf("%s after %d: %s %d-%d by %s", a.ContainerID, a.End/ms, a.Image.Name, a.Image.Start/ms,
			a.Image.End/ms, a.Image.By.Name)
		if a.IfName != "eth0" {
			said += " for " + a.IfName
		}
		if !a.Image.Ended {
			said += " (unfinished)"
		}
		for _, child := range a.Image.Children {
			said += " > " + child.Name
		}
		all = append(all, said)
	}
	return strings.Join(all, "; ")
}

func TestWorkBehindAnADD(t *testing.T) {
	c1 := mentions("c1")
	add := func(s *story) *story { return s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea").exit(100, "a") }
	stories{
		"for a setup that is over": {
			func(s *story) { add(s).tick(2000).image(3000, "p", "agent", "powershell", c1).exit(5000, "p") },
			"c1 after 100: powershell 3000-5000 by agent",
		},
		"with what it runs in its turn": {func(s *story) {
			add(s).tick(2000).image(3000, "p", "agent", "cmd", c1).command(3100, "q", "p", "netsh").exit(3200, "q").
				exit(5000, "p")
		}, "c1 after 100: cmd 3000-5000 by agent > netsh"},
		"for one that is still open it is told when that is over": {func(s *story) {
			add(s).image(300, "p", "agent", "powershell", c1).exit(500, "p")
			harness.Equal(t, s.afterwards(), "", "too early")
			s.tick(2000)
		}, "c1 after 100: powershell 300-500 by agent"},
		"an agent that is met only then": {func(s *story) {
			s.plugin(0, "a", "ADD", "antrea").exit(100, "a").tick(2000).hidden(2990, "agent").
				image(3000, "p", "agent", "powershell", c1).exit(5000, "p")
		}, "c1 after 100: powershell 3000-5000 by agent"},
		"without its name it is nobody's": {
			func(s *story) { add(s).tick(2000).image(3000, "p", "agent", "powershell").exit(5000, "p") },
			"",
		},
		"with two names, too": {func(s *story) {
			add(s).tick(2000).image(3000, "p", "agent", "powershell", mentions("c1", "c2")).exit(5000, "p")
		}, ""},
		"a minute later nobody wants to know": {
			func(s *story) { add(s).tick(2000).image(60_101, "p", "agent", "powershell", c1).exit(60_200, "p") },
			"",
		},
		"what is not over after a minute is told as far as it came": {func(s *story) {
			add(s).tick(2000).image(3000, "p", "agent", "powershell", c1).tick(61_000).tick(62_000).exit(63_000, "p")
		}, "c1 after 100: powershell 3000-61000 by agent (unfinished)"},
		"and at the end of the stream": {
			func(s *story) { add(s).image(300, "p", "agent", "powershell", c1).end() },
			"c1 after 100: powershell 300-300 by agent (unfinished)",
		},
		"after a teardown there is nothing to work for": {func(s *story) {
			add(s).tick(2000).plugin(2100, "d", "DEL", "antrea").exit(2200, "d").tick(9000).
				image(9100, "p", "agent", "powershell", c1).exit(9200, "p")
		}, ""},
		"though a run that the runtime did not begin claims to be its setup": {func(s *story) {
			add(s).tick(2000).plugin(2100, "f", "ADD", "antrea", on("eth9"), startedBy(event.CallerRootless)).exit(2200, "f").tick(9000).
				image(9100, "p", "agent", "powershell", c1).exit(9200, "p")
		}, "c1 after 100: powershell 9100-9200 by agent"},
		"nor does its teardown end it": {func(s *story) {
			add(s).tick(2000).plugin(2100, "f", "DEL", "antrea", startedBy(event.CallerRootless)).exit(2200, "f").tick(9000).
				image(9100, "p", "agent", "powershell", c1).exit(9200, "p")
		}, "c1 after 100: powershell 9100-9200 by agent"},
		"whose setup was not kept has none": {func(s *story) {
			add(s).tick(2000)
			s.line.Pods().Forget(s.closed[0].Key())
			s.image(3000, "p", "agent", "powershell", c1).exit(5000, "p")
		}, ""},
		"what had ended by then neither": {func(s *story) {
			add(s).image(300, "p", "agent", "powershell", c1).exit(500, "p").tick(2000)
			s.line.Pods().Forget(s.closed[0].Key())
		}, ""},
		"an agent that is seen called has none": {func(s *story) {
			s.at(0, &event.Agent{Process: "agent", Name: "agent"}).plugin(0, "a", "ADD", "antrea").exit(100, "a").tick(2000)
			s.image(3000, "p", "agent", "powershell", c1).exit(5000, "p")
		}, ""},
	}.each(t, tell, func(s *story) string {
		s.over()
		return s.afterwards()
	})
}

// Commands below an agent's program end when it is reported, even running ones.
func TestCommandsBelowUnfinishedWork(t *testing.T) {
	stories{
		"after a minute":           {func(s *story) { s.tick(61_000).tick(62_000) }, "netsh 4000-61000 (unfinished)"},
		"at the end of the stream": {func(s *story) { s.tick(5000).end() }, "netsh 4000-5000 (unfinished)"},
		"when the program exits":   {func(s *story) { s.exit(5000, "p") }, "netsh 4000-5000 (unfinished)"},
	}.each(t, func(t *testing.T) *story {
		return tell(t).hidden(0, "agent").plugin(0, "a", "ADD", "antrea").exit(100, "a").tick(2000).
			image(3000, "p", "agent", "cmd", mentions("c1")).command(4000, "q", "p", "netsh")
	}, func(s *story) string {
		after := s.line.Pods().Afters()
		if len(after) != 1 {
			s.t.Fatalf("got %+v", after)
		}
		return drawImages(after[0].Image.Children)
	})
}

// A recording may report anything of such a program.
func TestWorkBehindAnADDMayDoAnything(t *testing.T) {
	inside := event.Namespace{Key: "ns1"}
	for name, body := range map[string]event.Body{
		"enter":   &event.Enter{Process: "p", NetNS: inside},
		"setting": &event.Setting{Process: "p", NetNS: inside, Key: "net/ipv4/ip_forward"},
		"request": &event.Request{
			Process: "p", NetNS: inside, Object: event.ObjectLink,
			Interface: event.Interface{Index: 2, Name: "eth0"},
		},
		"link":   &event.Link{Process: "p", NetNS: inside, Index: 2, Name: "eth0"},
		"result": &event.Result{Process: "p"},
		"lost":   &event.Lost{Process: "p", Count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t).hidden(0, "agent").plugin(0, "a", "ADD", "antrea").exit(100, "a").tick(2000)
			s.image(3000, "p", "agent", "powershell", mentions("c1")).at(3100, body).exit(5000, "p")
			harness.Equal(t, s.afterwards(), "c1 after 100: powershell 3000-5000 by agent")
		})
	}
}

func TestWorkBehindAnADDIsBounded(t *testing.T) {
	s := tell(t).hidden(0, "agent").plugin(0, "a", "ADD", "antrea").exit(100, "a").tick(2000)
	const more = 5
	for i := range 16 + more {
		p := fmt.Sprint("p", i)
		s.image(3000, p, "agent", "powershell", mentions("c1")).exit(3001, p)
	}
	if n := len(s.line.Pods().Afters()); n != 16 || s.line.Stats().AfterDropped != more {
		t.Errorf("%d kept, %d dropped", n, s.line.Stats().AfterDropped)
	}
	for i := range 3 * int64(s.line.options.Operations) {
		p := fmt.Sprint("b", i)
		s.plugin(4000+i*2000, p, "ADD", "antrea", container(p)).exit(4001+i*2000, p).tick(5900 + i*2000)
		s.image(5901+i*2000, "of "+p, "agent", "powershell", mentions(p))
	}
	if n := held(s.line.pods, "afters", "known"); n > s.line.options.Operations {
		t.Errorf("%d setups are remembered", n)
	}
	after := s.end().line.Pods().Afters()
	byStart := func(a, b model.After) int { return int(a.Image.Start - b.Image.Start) }
	if len(after) < 8 || !slices.IsSortedFunc(after, byStart) {
		t.Errorf("work for %d setups, not in order: %+v", len(after), after)
	}
}

func TestTheNetworkIsNotReady(t *testing.T) {
	pods := event.Network{
		Name: "pods", File: "10-pods.conflist",
		Plugins: []event.Plugin{{Type: "bridge"}, {Type: "portmap"}},
	}
	s := tell(t)
	s.at(5, &event.Readiness{Ready: true})
	harness.Equal(t, len(s.line.Pods().Outages()), 0, "outages before there was one")
	none := &event.Readiness{
		Reason: "cni plugin not initialized", Lacks: event.LackConfiguration,
		Missing: "nobody wrote a network",
	}
	s.at(10, none).at(15, none).at(20, &event.Networks{Networks: []event.Network{pods, {Name: "tenant", File: "20-vlan.conf"}}})
	s.at(25, &event.Readiness{Reason: "cni plugin not initialized"}).at(30, &event.Readiness{
		Reason: "STATUS says no", Lacks: event.LackStatus, Missing: "the agent says no", Overdue: true,
	}).at(35, &event.Readiness{Reason: "STATUS says no"})
	harness.Equal(t, len(s.line.Pods().Outages()), 0, "outages before the first has ended")
	s.at(40, &event.Readiness{Ready: true})
	over := s.line.Pods().Outages()
	if len(over) != 1 || len(s.line.Pods().Outages()) != 0 {
		t.Fatalf("%d outages", len(over))
	}
	o := over[0]
	got := fmt.Sprint(o.Start/ms, "-", o.End/ms)
	for _, said := range append(o.Reasons, o.Folder...) {
		got += fmt.Sprintf("; %d %s", said.At/ms, said.Text)
	}
	for _, lack := range o.Lacks {
		got += fmt.Sprintf("; %d %s %s", lack.At/ms, lack.What, lack.Text)
	}
	if !o.Overdue {
		t.Error("that it took too long is forgotten")
	}
	const want = "10-40; 10 cni plugin not initialized; 30 STATUS says no; 10 no network; 20 10-pods.conflist (pods: bridge portmap); 20-vlan.conf (tenant:)" +
		"; 10 cni_configuration nobody wrote a network; 30 cni_status the agent says no"
	harness.Equal(t, got, want)
}
