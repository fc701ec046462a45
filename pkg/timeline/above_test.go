package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// Under a runtime whose spans are relayed.
func relayed(t *testing.T) *story {
	s := tell(t)
	s.line.options.Wait = 7 * time.Second
	return s
}

// span reports a span of the runtime.
func (s *story) span(at int64, name string, start, end int64, container ...string) *story {
	a := &event.Above{
		SandboxID: "c1", Name: name, Start: start * ms, End: end * ms,
		Trace: event.TraceContext{Parent: name},
	}
	if len(container) > 0 {
		a.SandboxID = container[0]
	}
	return s.at(at, a)
}

func running(id, traceparent string) *event.Sandbox {
	return &event.Sandbox{Phase: event.SandboxRunning, ID: id, Trace: event.TraceContext{Parent: traceparent}}
}

func environment(traceparent string) func(*event.Exec) {
	return func(e *event.Exec) { e.Call.Trace.Parent = traceparent }
}

const (
	sampledContext   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampledContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// Per operation: when and why it left, and its calls' parents.
func TestWhatTheRuntimeTellsIsAboveTheCalls(t *testing.T) {
	setup := func(s *story) *story { // ends at 60: NRI reports it, and a tick follows
		return s.plugin(0, "l", "ADD", "loopback", on("lo")).exit(3, "l").
			plugin(1, "b", "ADD", "bridge").exit(50, "b").at(55, running("c1", sampledContext)).tick(60)
	}
	stories{
		"1.7: the request, when it is told at last": {func(s *story) {
			setup(s).tick(1000).span(5000, "RunPodSandbox", -9, 70).tick(5010)
		}, "5000 setup sandbox running: lo<RunPodSandbox eth0<RunPodSandbox\n"},
		"2.3: the narrowest of the spans around the calls, told before the operation is over": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").exit(50, "b").
				span(52, "RunPodSandbox", -9, 51).span(52, "cni.setup_pod_network", -1, 51).span(52, "cri.sandbox.run", -5, 51).
				at(55, running("c1", "")).tick(60)
		}, "60 setup sandbox running: eth0<cni.setup_pod_network\n"},
		"what comes after the first that fits changes nothing": {func(s *story) {
			setup(s).span(100, "cni.setup_pod_network", -1, 51).span(100, "cri.sandbox.run", -5, 80).tick(200)
		}, "100 setup sandbox running: lo<cni.setup_pod_network eth0<cni.setup_pod_network\n"},
		"settled, and a DEL that comes while it waits": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").exit(8, "b").tick(2000).plugin(2100, "d", "DEL", "bridge").
				exit(2110, "d").tick(5000).span(5100, "outer", -5, 15).span(5200, "StopPodSandbox", 2050, 2200)
		}, "5100 setup settled: eth0<outer\n5200 teardown settled: eth0<StopPodSandbox\n"},
		"a failed ADD, and the DEL after it within the same request": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").exit(8, "b", 1).plugin(10, "d", "DEL", "bridge").exit(12, "d").tick(2000).
				span(2500, "cni.setup_pod_network", -1, 9).span(2500, "cri.sandbox.run", -5, 15)
		}, "2500 setup next operation: eth0<cni.setup_pod_network\n2500 teardown settled: eth0<cri.sandbox.run\n"},
		"each DEL under its own request": {func(s *story) {
			s.plugin(0, "d", "DEL", "bridge").exit(5, "d").plugin(100, "e", "DEL", "bridge", netns("")).exit(105, "e").
				tick(2000).
				span(2500, "StopPodSandbox", -50, 20).tick(2600).span(3000, "RemovePodSandbox", 90, 120)
		}, "3000 teardown settled: eth0<StopPodSandbox eth0<RemovePodSandbox\n"},
		"nothing joins an operation that only waits": {
			func(s *story) {
				s.plugin(0, "d", "DEL", "bridge").exit(5, "d").tick(2000).
					plugin(4000, "e", "DEL", "bridge", netns("")).exit(4005, "e").tick(6100).
					span(6200, "RemovePodSandbox", 3990, 4010).span(6300, "StopPodSandbox", -50, 20).tick(6400)
			},
			// It leaves after the first, to which it links.
			"6300 teardown settled: eth0<StopPodSandbox\n6300 teardown settled: eth0<RemovePodSandbox\n",
		},
		"a span of another sandbox closes nothing that still runs": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge", environment("its own")).at(9, running("c1", "")).
				span(20, "RunPodSandbox", -9, 15, "c2").exit(50, "b").tick(60)
		}, "60 setup sandbox running: eth0<its own\n"},
		"the wait is over after its time": {
			func(s *story) { setup(s).tick(7059).tick(7061) },
			"7061 setup sandbox running: lo<- eth0<-\n",
		},
		"no wait where the environment names the span (containerd >= 2.4)": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge", environment("its own")).exit(8, "b").at(9, running("c1", "")).tick(10).
				span(11, "cri.sandbox.run", -5, 9)
		}, "10 setup sandbox running: eth0<its own\n"},
		"no wait where NRI says that nothing is recorded": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").exit(8, "b").at(9, running("c1", unsampledContext)).tick(10)
		}, "10 setup sandbox running: eth0<-\n"},
		"what NRI said of the setup says nothing of the teardown": {func(s *story) {
			s.at(0, running("c1", unsampledContext)).plugin(1, "d", "DEL", "bridge").exit(8, "d").tick(1200).tick(8000).
				tick(9000)
		}, "9000 teardown settled: eth0<-\n"},
		"no wait for a call that hangs": {
			func(s *story) { s.plugin(0, "b", "ADD", "bridge").tick(61_000) },
			"61000 setup held too long: eth0<-\n",
		},
		"no wait for a STATUS": {
			func(s *story) { s.plugin(0, "b", "STATUS", "bridge", container("")).exit(8, "b").tick(2000) },
			"2000 other settled: eth0<-\n",
		},
		"a span of another sandbox is nothing": {
			func(s *story) { setup(s).span(100, "RunPodSandbox", -9, 70, "c2").tick(8000) },
			"8000 setup sandbox running: lo<- eth0<-\n",
		},
		"a span that began or ended too early, or began too late, is nothing": {func(s *story) {
			setup(s).span(100, "before", -90, -1).span(100, "cut short", -9, 20).span(100, "begun later", 30, 70).
				span(100, "backwards", 70, -9).tick(8000)
		}, "8000 setup sandbox running: lo<cut short eth0<-\n"},
		"the two clocks may have slipped a little": {
			func(s *story) { setup(s).span(100, "RunPodSandbox", 15, 35) },
			"100 setup sandbox running: lo<RunPodSandbox eth0<RunPodSandbox\n",
		},
		"at the end of the stream nobody waits": {
			func(s *story) { setup(s).tick(100).end() },
			"100 setup sandbox running: lo<- eth0<-\n",
		},
	}.each(t, relayed, func(s *story) string {
		s.over()
		return departures(s)
	})
}

func departures(s *story) string {
	var b strings.Builder
	for i, op := range s.closed {
		fmt.Fprintf(&b, "%d %s %s:", s.left[i], op.Kind, op.Closed)
		for _, call := range op.Calls {
			above := call.Trace.Parent
			if above == "" {
				above = "-"
			}
			fmt.Fprintf(&b, " %s<%s", call.IfName, above)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestATeardownKnowsWhatItsSetupHangsUnder(t *testing.T) {
	s := relayed(t).plugin(0, "b", "ADD", "bridge").exit(8, "b", 1).plugin(10, "d", "DEL", "bridge").exit(12, "d").
		tick(2000).
		span(2500, "outer", -5, 15)
	before := s.closed[1].Before
	if len(before) != 1 || before[0].Trace.Parent != "outer" {
		t.Errorf("%+v", before)
	}
}

func TestSpansThatComeTooLateAreCounted(t *testing.T) {
	s := relayed(t).plugin(0, "b", "ADD", "bridge").exit(8, "b").tick(2000).tick(9001)
	s.span(9002, "cri.sandbox.run", -5, 9).span(9003, "of something later", 200, 300).span(9004, "of nobody", -5, 9, "c9")
	if got := s.line.Stats(); got.Late != 1 || got.Orphaned != 1 {
		t.Errorf("%+v, want one span that came too late, and one operation that waited in vain", got)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	s := relayed(t)
	for i := range 100 {
		p, id := fmt.Sprint("p", i), container(fmt.Sprint("c", i))
		s.plugin(int64(i), p, "ADD", "bridge", id).exit(int64(i), p)
		for range 100 {
			s.span(int64(i), "foreign", 900, 901, fmt.Sprint("c", i))
		}
		s.at(int64(i), running(fmt.Sprint("c", i), "")).tick(int64(i))
	}
	for _, op := range s.line.open {
		if len(op.Aboves) > abovesMax {
			t.Errorf("%d spans are remembered of one operation", len(op.Aboves))
		}
	}
	harness.Equal(t, s.line.Open(), 4, "operations that wait, half of the limit")
	harness.Equal(t, held(s.line.pods, "starts", "known"), 4, "starts that wait, the same")
	if got := s.line.Stats(); got.Refused != 0 || got.Orphaned != 96 || len(s.line.past.orphans.entries) > 8 {
		t.Errorf("%+v, %d remembered", got, len(s.line.past.orphans.entries))
	}
}

func TestATrustedThreadIsAboveTheCallsThatItRuns(t *testing.T) {
	runs := func(trusted bool, context ...string) func(*story) {
		return func(s *story) {
			s.plugin(0, "m", "ADD", "shim", container("c0")).at(1, &event.Accept{})
			s.line.tree.Serve("agentd", 1)
			for i, c := range context {
				at, p, env := int64(10*i+10), fmt.Sprint("p", i), ""
				if c == "environment" {
					c, env = sampledContext, unsampledContext
				}
				s.at(at, &event.Fork{Process: event.Process(p), Parent: "agentd", Thread: &event.ThreadSpan{TraceContext: event.TraceContext{Parent: c}, Trusted: trusted}}).
					plugin(at, p, "ADD", fmt.Sprint("plugin", i), by("agentd"), startedBy(event.CallerAgent), environment(env)).exit(at+1, p)
			}
		}
	}
	other := strings.Replace(sampledContext, "0af7", "1bf7", 1)
	stories{
		"its span":                     {runs(true, sampledContext), "eth0<" + sampledContext},
		"a chain under several spans":  {runs(true, sampledContext, other), "eth0<" + sampledContext},
		"a tenant's is never a parent": {runs(false, sampledContext), "eth0<-"},
		"the environment is nearer":    {runs(true, "environment"), "eth0<" + unsampledContext},
	}.each(t, tell, func(s *story) string {
		for _, line := range strings.Split(departures(s.tick(9000).end()), "\n") {
			if _, calls, is := strings.Cut(line, ": "); is && !strings.Contains(line, "shim") {
				return calls
			}
		}
		return ""
	})
}
