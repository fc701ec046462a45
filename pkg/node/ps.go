package node

import (
	"context"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/removal"
	"github.com/cniscope/cniscope/pkg/text"
)

func underWay(flights []model.Flight) []control.Call {
	now := clock.Monotonic()
	calls := make([]control.Call, 0, len(flights))
	for _, f := range flights {
		c := control.Call{
			Namespace: f.Pod.Namespace, Pod: f.Pod.Name, ContainerID: f.ContainerID,
			Command: f.Command, IfName: f.IfName, Plugin: f.Plugin, Age: time.Duration(now - f.Start),
			Runs: f.Name, PID: f.PID, Running: time.Duration(now - f.Since), Polls: f.Polls,
		}
		if f.Asks != "" {
			c.Asks, c.Agent, c.Asking = f.Asks, f.Agent, time.Duration(now-f.Asked)
		}
		c.Now()
		calls = append(calls, c)
	}
	return calls
}

func inRemoval(s removal.Step) control.Call {
	c := control.Call{
		Command: s.Command(), Plugin: s.Name, Age: s.Age, Runs: s.Runs, PID: uint32(s.PID), Running: s.Running,
		State: s.State, Waits: s.Waits, Verdict: s.Says(),
	}
	if of := s.Sandbox; of != nil {
		c.Namespace, c.Pod, c.ContainerID = of.Pod.Namespace, of.Pod.Name, of.ID
	}
	return c
}

func (n *node) removals(runtime int) []removal.Step {
	n.mu.Lock()
	sandboxes := n.pipeline.Sandboxes()
	n.mu.Unlock()
	return n.removing.Look(sandboxes, runtime)
}

func (n *node) watchRemovals(ctx context.Context, hung time.Duration, runtime func() int) {
	said := map[string]bool{}
	for tick := time.Tick(max(hung, time.Second)); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		now := map[string]bool{}
		for _, s := range n.removals(runtime()) {
			if s.Age < hung {
				continue
			}
			now[s.Key()] = true
			if !said[s.Key()] {
				n.hangs(s)
			}
		}
		said = now
	}
}

func (n *node) hangs(s removal.Step) {
	c := inRemoval(s)
	l := control.Line{
		Time: time.Now(), Command: c.Command, Duration: c.Age, Result: control.Hung, Cause: string(s.Cause),
		Verdict: c.Verdict, Remedy: c.Remedy(), Certain: true, Namespace: c.Namespace, Pod: c.Pod, Sandbox: c.ContainerID,
	}
	if s.Sandbox != nil {
		l.PodUID = s.Sandbox.Pod.UID
	}
	n.history.Add(l)
	n.log.Warn("sandbox step hangs", "pod", strings.Trim(l.Namespace+"/"+l.Pod, "/"), "node", n.name, "step", l.Command,
		"for", text.Round(s.Age), "verdict", l.Verdict, "cause", s.Cause, "remedy", l.Remedy)
}
