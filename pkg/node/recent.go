package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/spool"
)

const (
	recentAgents   = 32 // addresses, latest connections
	recentFailures = 32
	recentNetworks = 32
)

type recent struct {
	mu       sync.Mutex
	agents   spool.Memory[control.Agent]
	failures spool.Memory[control.Failure]
	worked   map[string]time.Time
}

func (m *recent) take(result pipeline.Result) {
	r, is := result.(*pipeline.Judged)
	if !is {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, call := range r.Operation.Calls {
		c := r.Judgement.Calls[call]
		ended := clock.Time(call.End)
		m.call(r.Operation, call, c, ended)
		for _, run := range call.Runs {
			said := ""
			if run.Failed() {
				said = cmp.Or(c.Failure, "the plugin failed")
			}
			m.run(call.Network, run.Run.Plugin, run, said, ended)
		}
	}
}

func (m *recent) call(op *model.Operation, call *model.Call, c *judge.Call, ended time.Time) {
	f := control.Failure{
		Time: ended, Took: c.Took, Namespace: op.Pod.Namespace, Pod: op.Pod.Name,
		Command: call.Command, IfName: call.IfName, Network: call.Network,
		Plugin: c.Plugin(call), Says: c.Failure,
	}
	if c.Failure == "" {
		if m.worked == nil || len(m.worked) >= recentNetworks {
			m.worked = map[string]time.Time{}
		}
		m.worked[f.Key()] = ended
		return
	}
	if c.Verdict != nil {
		f.Says, f.Remedy = c.Verdict.Says, c.Verdict.Remedy
	}
	m.failures.Add(f)
	m.failures.Remove(0, len(m.failures.Held())-recentFailures)
}

func (m *recent) run(network, plugin string, im *model.Image, failed string, ended time.Time) {
	for _, f := range im.Facts {
		if c, is := f.What.(*model.Connection); is && (c.Network == "unix" || c.Network == "tcp") {
			m.connection(network, plugin, c, failed, ended)
		}
	}
	for _, child := range im.Children {
		m.run(network, plugin, child, failed, ended)
	}
}

func (m *recent) connection(network, plugin string, c *model.Connection, failed string, ended time.Time) {
	a := control.Agent{Network: network, Plugin: plugin, Kind: c.Network, Address: c.Address}
	if i := slices.IndexFunc(m.agents.Held(), func(b control.Agent) bool {
		return a.Network == b.Network && a.Plugin == b.Plugin && a.Kind == b.Kind && a.Address == b.Address
	}); i >= 0 {
		a = m.agents.Held()[i]
		m.agents.Remove(i, 1)
	}
	if c.Agent != nil {
		a.Name, a.PID = c.Agent.Name, c.Agent.PID
	}
	switch {
	case c.Error == "" && failed == "":
		a.Answered, a.Failures, a.Error = ended, 0, ""
	case failed != "":
		a.Failed, a.Error = ended, cmp.Or(c.Error, failed)
		a.Failures++
	}
	m.agents.Add(a)
	m.agents.Remove(0, len(m.agents.Held())-recentAgents)
}

func (m *recent) list() control.Recent {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := control.Recent{
		Agents: slices.Clone(m.agents.Held()), Failures: slices.Clone(m.failures.Held()), Worked: map[string]time.Time{},
	}
	for key, at := range m.worked {
		r.Worked[key] = clock.Reset(at)
	}
	for i := range r.Agents {
		a := &r.Agents[i]
		a.Answered, a.Failed = clock.Reset(a.Answered), clock.Reset(a.Failed)
	}
	for i := range r.Failures {
		r.Failures[i].Time = clock.Reset(r.Failures[i].Time)
	}
	return r
}
