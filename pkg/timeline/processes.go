package timeline

import (
	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

func (t *Timeline) fork(f *event.Fork) {
	switch step := t.tree.Apply(f); step.Role {
	case tree.Forked:
		if parent := active.Of(step.Parent); parent != nil { // otherwise an agent's
			step.Process.Kept = parent.Child()
		}
	case tree.Refused:
		if parent := active.Of(step.Process); parent != nil {
			t.refuse(parent)
		}
	default:
		t.stats.Late++
	}
}

func (t *Timeline) refuse(parent *active.Process) {
	t.stats.Refused++
	if parent != nil {
		parent.Op.Lacks("more processes than the limit")
	}
}

func (t *Timeline) exec(now int64, e *event.Exec) []*model.Operation {
	step := t.tree.Apply(e)
	switch step.Role {
	case tree.Unknown:
		t.stats.Late++
		return nil
	case tree.Refused:
		t.refuse(active.Of(t.tree.Get(e.Parent)))
		return nil
	}
	p, parent := active.Of(step.Process), (*active.Process)(nil)
	if step.New {
		parent = active.Of(t.tree.Get(e.Parent))
	}
	switch {
	case step.Role == tree.Root:
		if by := t.agents.Commissioned(e, step.Process.Run); by != nil {
			if p != nil { // an agent's process, which becomes the plugin
				p.Replace(now, e.Used)
				by.Connections = p.Connections
			}
			p = by
		} else if p == nil {
			return t.root(now, e, step.Process)
		}
	case p != nil:
	case parent != nil && step.New: // its fork was lost
		p = parent.Child()
	case t.agents.Hidden(step.Process):
		var by *event.Actor
		if p, by = t.agents.HiddenWork(e, step.Process, t.open); p != nil {
			break
		}
		if p = t.pods.After(t.now, e, by, t.open); p == nil {
			return nil
		}
		t.tree.Assign(step.Process)
	default:
		if p = t.agents.Work(e, step.Process); p == nil {
			return nil
		}
	}
	step.Process.Kept = p
	if p.Op.Room() {
		im := active.NewImage(now, e, step.Role == tree.Delegate || step.Role == tree.Root)
		im.Stack, im.Thread = step.Process.Stack, step.Process.Thread
		p.Runs(im, e.Used)
		t.pods.Begun(p, e.Process)
	}
	return nil
}

func (t *Timeline) root(now int64, e *event.Exec, of *tree.Process) (closed []*model.Operation) {
	if model.KindOf(e.Call.Command) == model.Teardown {
		closed = t.teardownBegins(now, e)
	}
	op := t.operationOf(now, e)
	if op == nil || !op.Room() {
		t.tree.Remove(e.Process)
		return closed
	}
	if e.InFlight {
		op.Lacks("already running when cniscope started")
	}
	im := active.NewImage(now, e, true)
	im.Stack, im.Thread = of.Stack, of.Thread
	if p := waiting(op, im, e); p != nil {
		p.Runs(im, e.Used)
		of.Kept = p
		t.losses.belongs(e.Process, op, now)
		return closed
	}
	call := t.callFor(op, im, e)
	call.Runs = append(call.Runs, im)
	call.Seen = call.Seen || t.seeing
	op.Identify(e.Call.Pod)
	of.Kept = active.Leader(op, call, im, e.Used)
	t.losses.belongs(e.Process, op, now)
	return closed
}

func (t *Timeline) exit(now int64, e *event.Exit) {
	t.locks.Gone(e.Process, now)
	step := t.tree.Apply(e)
	p := active.Of(step.Process)
	switch {
	case p != nil:
		t.leave(now, e.Process, p)
		p.Exit(now, e)
		t.pods.Exited(now, p, e.Process)
	case t.agents.Known(e.Process):
		t.agents.Gone(now, e.Process)
	case step.Role == tree.Unknown:
		t.stats.Late++
	}
}
