package timeline

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

func (t *Timeline) fork(f *event.Fork) {
	switch step := t.tree.Apply(f); step.Role {
	case tree.Forked:
		if parent := kept(step.Parent); parent != nil { // else an agent's
			step.Process.Kept = parent.child()
		}
	case tree.Refused:
		if parent := kept(step.Process); parent != nil {
			t.oneTooMany(parent)
		}
	default:
		t.stats.Late++
	}
}

// kept is the process that the tree keeps for the timeline; nil if p belongs to no open operation.
func kept(p *tree.Process) *process {
	if p == nil {
		return nil
	}
	mine, _ := p.Kept.(*process)
	return mine
}

// oneTooMany counts a process below parent that the tree refused.
func (t *Timeline) oneTooMany(parent *process) {
	t.stats.Refused++
	if parent != nil {
		parent.op.partial("more processes than the limit")
	}
}

func (t *Timeline) exec(now int64, e *event.Exec) []*model.Operation {
	step := t.tree.Apply(e)
	switch step.Role {
	case tree.Unknown:
		t.stats.Late++
		return nil
	case tree.Refused:
		t.oneTooMany(kept(t.tree.Get(e.Parent)))
		return nil
	}
	p, parent := kept(step.Process), (*process)(nil)
	if step.New {
		parent = kept(t.tree.Get(e.Parent))
	}
	switch {
	case step.Role == tree.Root:
		if by := t.agents.commissioned(e, step.Process.Run); by != nil {
			if p != nil { // an agent's, which goes on as the plugin that it runs
				p.replace(now, e.Used)
				by.connections = p.connections
			}
			p = by
		} else if p == nil {
			return t.root(now, e, step.Process)
		}
	case p != nil:
	case parent != nil && step.New: // its fork was lost
		p = parent.child()
	case t.agents.isHidden(step.Process):
		if p = t.hiddenWork(e, step.Process); p == nil {
			return nil
		}
	default:
		if p = t.agents.work(e, step.Process); p == nil {
			return nil
		}
	}
	step.Process.Kept = p
	if p.op.keep() {
		im := newImage(now, e)
		if step.Role == tree.Delegate || step.Role == tree.Root {
			im.Run = newRun(e)
		}
		p.runs(im, e.Used)
		t.afters.begun(p, e.Process)
	}
	return nil
}

// root takes a run that no run started: the next link of an open call's chain, or the first of a new one.
func (t *Timeline) root(now int64, e *event.Exec, of *tree.Process) (closed []*model.Operation) {
	if model.KindOf(e.Call.Command) == model.Teardown {
		closed = t.teardownBegins(now, e)
	}
	op := t.operationOf(now, e)
	if op == nil || !op.keep() {
		t.tree.Remove(e.Process)
		return closed
	}
	if e.InFlight {
		op.partial("already running when cniscope started")
	}
	im := newImage(now, e)
	im.Run = newRun(e)
	if p := op.waiting(im, e); p != nil {
		p.runs(im, e.Used)
		of.Kept = p
		t.losses.belongs(e.Process, op, now)
		return closed
	}
	call := t.callFor(op, im, e)
	call.Runs = append(call.Runs, im)
	call.Seen = call.Seen || t.node.seeing
	op.live++
	op.identify(e.Call.Pod)
	of.Kept = &process{op: op, up: im, image: im, run: im, call: call, used: e.Used, ran: e.Used}
	t.losses.belongs(e.Process, op, now)
	return closed
}

func (t *Timeline) exit(now int64, e *event.Exit) {
	t.locks.gone(e.Process, now)
	step := t.tree.Apply(e)
	p := kept(step.Process)
	switch {
	case p != nil:
		t.leave(now, e.Process, p)
		p.exit(now, e)
		t.afters.exited(now, p, e.Process)
	case t.agents.known[e.Process] != nil:
		t.agents.gone(now, e.Process)
	case step.Role == tree.Unknown:
		t.stats.Late++
	}
}
