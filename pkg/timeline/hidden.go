package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// isHidden reports whether a process is one of an agent's of which nobody sees who calls it.
func (as *agents) isHidden(p *tree.Process) bool {
	if p.Agent == nil {
		return false
	}
	a := as.known[p.Agent.Process]
	return a != nil && a.hidden && len(a.calls)+len(a.recent) == 0
}

// hiddenWork finds the call for which such an agent runs a program, and returns the process that of is to be from
// now on: by what it mentions the call that is under way for that sandbox, below the plugin that runs; without a
// mention perhaps any that is. Where none is under way that is for a pod whose ADD has returned. It returns nil if it is
// done for nobody.
func (t *Timeline) hiddenWork(e *event.Exec, of *tree.Process) *process {
	who := t.agents.known[of.Agent.Process].who
	ops := t.servedNow(e.Mentions)
	if len(ops) == 0 {
		return t.after(e, of, &who)
	}
	cl := &claim{by: &who, Attribution: model.Attribution{Evidence: model.Certain}}
	if len(e.Mentions) != 1 {
		cl.Evidence = model.Candidate
		for _, op := range ops[1:] {
			cl.Others = append(cl.Others, op.KeyOf(op.served()))
		}
	}
	t.agents.tree.Assign(of)
	call := ops[0].served()
	run := call.Live()
	return &process{op: ops[0], call: call, run: run, up: run, claim: cl}
}

// servedNow lists the operations of which a plugin runs: those of these containers, or all where none is named. What
// the runtime stands for goes before others that name the same container.
func (t *Timeline) servedNow(containers []string) (ops []*operation) {
	for _, vouched := range []bool{true, false} {
		for _, op := range t.open {
			if op.vouched() == vouched && op.served() != nil && (len(containers) == 0 || slices.Contains(containers, op.ContainerID)) {
				ops = append(ops, op)
			}
		}
		if len(ops) > 0 && len(containers) > 0 {
			return ops
		}
	}
	return ops
}

// served is the call of op that an agent may work for: one of which a plugin runs, and of several not that of lo;
// nil if none does.
func (op *operation) served() (found *model.Call) {
	for _, call := range op.Calls {
		if call.Live() != nil && (found == nil || found.IfName == "lo") {
			found = call
		}
	}
	return found
}
