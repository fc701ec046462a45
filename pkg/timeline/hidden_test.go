package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// An agent whose callers are invisible.
func (s *story) hidden(at int64, process string) *story {
	return s.at(at, &event.Agent{Process: event.Process(process), PID: 7, Name: process, Hidden: true})
}

// What agents ran for closed operations, and the evidence.
func (s *story) attributed() string {
	var all []string
	for _, op := range s.closed {
		for _, call := range op.Calls {
			for _, run := range call.Runs {
				run.Walk(func(im *model.Image) {
					if im.Attribution == nil {
						return
					}
					said := fmt.Sprintf("%s: %s %d-%d %s by %s", op.ContainerID, im.Name, im.Start/ms, im.End/ms,
						im.Attribution.Evidence, im.By.Name)
					if n := len(im.Attribution.Others); n > 0 {
						said += fmt.Sprintf(" or %d others", n)
					}
					all = append(all, said)
				})
			}
		}
	}
	return strings.Join(all, "; ")
}

func TestWhatAnAgentRunsThatNobodySeesCalled(t *testing.T) {
	two := func(s *story) *story {
		return s.plugin(0, "a", "ADD", "antrea").plugin(10, "b", "ADD", "antrea", container("c2"))
	}
	end := func(s *story) { s.exit(100, "a").exit(110, "b").tick(2000) }
	stories{
		"what it names is certain": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell", mentions("c2")).exit(60, "p"))
		}, "c2: powershell 20-60 certain by agent"},
		"without a name it is a candidate of all that are under way": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell").exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent or 1 others"},
		"two names are none": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell", mentions("c1", "c2")).exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent or 1 others"},
		"a name of a call that the runtime did not begin is no second one": {func(s *story) {
			end(s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea", container("c2"), startedBy(event.CallerRootless)).
				plugin(10, "b", "ADD", "antrea").image(20, "p", "agent", "powershell", mentions("c1", "c2")).exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent"},
		"but the only one is": {func(s *story) {
			end(s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea", startedBy(event.CallerRootless)).
				plugin(10, "b", "ADD", "antrea", container("c2")).image(20, "p", "agent", "powershell", mentions("c1")).exit(60, "p"))
		}, "c1: powershell 20-60 certain by agent"},
		"and without a name it may be for such a call, too": {func(s *story) {
			end(s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea").
				plugin(10, "b", "ADD", "antrea", container("c2"), startedBy(event.CallerRootless)).
				image(20, "p", "agent", "powershell").exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent or 1 others"},
		"it is not forgotten between two pods": {func(s *story) {
			s.hidden(0, "agent").plugin(0, "o", "ADD", "antrea", container("c0")).exit(5, "o").tick(2000)
			s.plugin(3000, "a", "ADD", "antrea").image(3010, "p", "agent", "powershell", mentions("c1")).exit(3020, "p").
				exit(3030, "a").tick(5000)
		}, "c1: powershell 3010-3020 certain by agent"},
		"of another sandbox's call it is none": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell", mentions("c9")).exit(60, "p"))
		}, ""},
		"when no plugin runs it is nobody's": {func(s *story) {
			end(two(s.hidden(0, "agent")).exit(90, "b").exit(91, "a").image(95, "p", "agent", "powershell").exit(97, "p"))
		}, ""},
		"who is over runs nothing any more": {func(s *story) {
			end(two(s.hidden(0, "agent")).at(15, &event.Agent{Process: "agent", Over: true}).
				image(20, "p", "agent", "powershell", mentions("c1")).exit(60, "p"))
		}, ""},
		"an agent that is seen called has its connections": {func(s *story) {
			end(two(s.at(0, &event.Agent{Process: "agent", Name: "agent"})).
				image(20, "p", "agent", "powershell", mentions("c1")).exit(60, "p"))
		}, ""},
	}.each(t, tell, func(s *story) string {
		s.over()
		return s.attributed()
	})
}

// A child has the stack of its own fork.
func TestAnImageHasTheStackOfItsFork(t *testing.T) {
	of := func(function string) []event.Frame { return []event.Frame{{Function: function}} }
	s := tell(t)
	s.plugin(0, "b", "ADD", "bridge")
	s.at(1, &event.Fork{Process: "sh", Parent: "b", Stack: of("main.configure")}).command(2, "sh", "b", "sh")
	s.command(3, "sh", "b", "iptables") // another image of the process
	s.at(4, &event.Fork{Process: "tc", Parent: "sh"}).command(5, "tc", "sh", "tc").exit(6, "tc").exit(7, "sh")
	s.at(8, &event.Fork{Process: "hl", Parent: "b", Stack: of("ipam.Allocate")}).command(9, "hl", "b", "ip").exit(10, "hl").exit(20, "b").tick(20000)
	harness.Equal(t, len(s.closed), 1)
	got := map[string]string{}
	for _, im := range s.closed[0].Calls[0].Runs[0].Children {
		if len(im.Stack) > 0 {
			got[im.Name] = im.Stack[0].Function
		}
		for _, child := range im.Children {
			got[child.Name] = ""
			harness.Equal(t, len(child.Stack), 0, "the stack of", child.Name)
		}
	}
	for name, want := range map[string]string{"sh": "main.configure", "iptables": "main.configure", "ip": "ipam.Allocate", "tc": ""} {
		harness.Equal(t, got[name], want, name)
	}
}

// NRI often reports the running sandbox before the function is known.
func TestACallWaitsForItsAgentsFunction(t *testing.T) {
	for found, left := range map[int64]int64{1200: 1201, 0: 1910, -1150: 1201} {
		s := tell(t)
		s.plugin(0, "b", "ADD", "bridge").dial(1, 1, "b", "one", "").
			at(2, &event.Accept{Socket: "one", Agent: event.Actor{Process: "a", PID: 44, Name: "agentd"}}).hangUp(900, "b", "one").
			at(901, &event.Agent{Process: "a", Socket: "one", Sought: true}).exit(910, "b").
			at(950, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(1100)
		switch {
		case found > 0:
			s.at(found, &event.Agent{Process: "a", Socket: "one"})
		case found < 0: // it ends before
			s.exit(-found, "a")
		}
		for at := int64(1201); at < 3000; at++ {
			s.tick(at)
		}
		harness.Equal(t, fmt.Sprint(s.left), fmt.Sprint([]int64{left}), "found at", found)
	}
}

// A report of a connection's function comes after its end, and a plugin's before.
func TestFunctionsOfAgentsAndPlugins(t *testing.T) {
	of := func(function string) []event.Frame { return []event.Frame{{Function: function}} }
	s := tell(t)
	s.plugin(0, "b", "ADD", "bridge")
	s.dial(1, 1, "b", "one", "").at(2, &event.Accept{Socket: "one", Agent: event.Actor{Process: "a", PID: 44, Name: "agentd"}})
	for i, cpu := range []int64{10, 30, 50} {
		s.at(int64(100*(i+1)), &event.Agent{Process: "a", CPU: cpu * ms})
	}
	s.hangUp(900, "b", "one")
	s.at(950, &event.Agent{Process: "a", Socket: "one", Stack: of("main.allocate"), Shared: true})
	s.at(990, &event.Agent{Process: "b", Since: 1, Stack: of("main.cmdAdd")}).exit(1000, "b").tick(20000)
	harness.Equal(t, len(s.closed), 1)
	run := s.closed[0].Calls[0].Runs[0]
	harness.Equal(t, run.In[0].Function, "main.cmdAdd")
	for _, c := range model.Each[*model.Connection](run.Facts) {
		harness.Equal(t, c.Work.Stack[0].Function, "main.allocate")
		harness.Equal(t, c.Work.CPU, 40*ms, "since the first sample")
		harness.Equal(t, c.Work.Perhaps, true, "another call may have been in it")
	}
}
