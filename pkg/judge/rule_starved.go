package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// hungry is the share of a call waiting for a CPU that makes this the cause.
const hungry = 0.4

// starved: the CPUs are overloaded; what others held up is not their fault.
func starved(e *evidence) *finding {
	held, _ := e.of(Locks, KernelLocks, DAD, Agents, Sleep)
	below := e.agentAbove(e.hungriest)
	if below != nil { // it shares the CPU limit
		held -= e.starvedAgents()
	}
	if float64(e.starved) < hungry*float64(e.Took) || held > e.starved || e.computes() {
		return nil
	}
	for _, stopped := range []rule{sharedHold, slowPeer, stoppedAgent} {
		if f := stopped(e); f != nil && f.heldUp && f.time > e.Took/2 {
			return nil
		}
	}
	f := &finding{Verdict: Verdict{
		Cause: CauseStarved, Says: "the processes of the call waited for a CPU",
		Remedy: CauseStarved.remedy(),
	}, time: e.starved, overall: true}
	if below != nil {
		f.Remedy = raiseLimit(below, "its plugins") + ", or move pods away"
	}
	return f
}

// computes reports whether one program would have made the call slow on idle CPUs, too.
func (e *evidence) computes() bool {
	plugins := map[string]time.Duration{}
	for i := range e.spans {
		if s := &e.spans[i]; s.image.Run != nil && !s.candidate {
			most := s.own
			if s.image.CPU >= s.image.RunDelay {
				most = s.free
			}
			plugins[s.plugin] += time.Duration(min(s.image.CPU, most))
		}
	}
	most := slices.Max(append(slices.Collect(maps.Values(plugins)), 0))
	for _, p := range e.programs() {
		if !p.candidate {
			most = max(most, p.computed)
		}
	}
	return e.Slow > 0 && most > e.Slow
}

func (e *evidence) starvedAgents() (took time.Duration) {
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent == nil {
			continue
		}
		ready := spent(s.agent.Work, model.Interval{Start: s.start, End: s.end}, event.AgentRunning)
		if s.agent.Work.CPU < ready/2 {
			took += time.Duration(min(s.own, ready-s.agent.Work.CPU))
		}
	}
	return took
}

func (e *evidence) agentAbove(i int) *model.Connection {
	depth := e.spans[i].depth
	for _, s := range slices.Backward(e.spans[:i]) {
		if s.depth >= depth {
			continue
		}
		if depth = s.depth; s.agent != nil {
			return s.agent
		}
	}
	return nil
}

func raiseLimit(agent *model.Connection, shares string) string {
	return fmt.Sprintf("raise the CPU limit of %s, shared by %s,"+ifThrottled+"; otherwise start fewer pods at once", nameOf(agent), shares)
}

const ifThrottled = " if nr_throttled grows in its cgroup's cpu.stat"
