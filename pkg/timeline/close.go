package timeline

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// cutOff is why an operation is partial that cniscope did not see the end of.
const cutOff = "still under way when cniscope ended"

// over says why an operation is over at now; nothing if it is not.
func (t *Timeline) over(op *operation, now int64) model.Closed {
	switch {
	case op.live == 0 && op.commit != 0 && op.commit <= now:
		return op.closed
	case op.live == 0 && now-op.End >= int64(t.options.Settle) && (now-op.End >= patience*int64(t.options.Settle) || !t.expects(op)):
		return model.ClosedSettled
	case now-op.Start >= int64(t.options.MaxHold):
		return model.ClosedHeld
	}
	return ""
}

// patience is how many times Options.Settle an operation waits that is known to be unfinished: a node with
// much to do may take seconds between two plugins, and from the last of them to a sandbox that runs.
const patience = 10

// expects reports whether something is still to come: the rest of a chain, or the word of NRI
// that the sandbox runs.
func (t *Timeline) expects(op *operation) bool {
	for _, call := range op.Calls {
		last := call.Runs[len(call.Runs)-1]
		if last.Failed() || last.Unseen {
			return false // a failed chain does not go on
		}
	}
	if op.Kind == model.Setup && t.node.nri && !op.unheard {
		return true
	}
	return slices.ContainsFunc(op.Calls, func(call *model.Call) bool {
		_, rest, known := t.node.networks.of(call)
		return known && len(rest) > 0 && call.Start >= t.node.networks.since
	})
}

// close ends the operations for which why gives a reason.
func (t *Timeline) close(why func(*operation) model.Closed) (closed []*model.Operation) {
	holding, over := map[string]bool{}, []*operation(nil)
	t.open = slices.DeleteFunc(t.open, func(op *operation) bool {
		op.Closed = why(op)
		if op.Closed == "" || t.awaits(op, holding) {
			return false
		}
		over = append(over, op)
		return true
	})
	for _, op := range over {
		t.finish(op)
		closed = append(closed, op.Operation)
	}
	if len(over) > 0 {
		t.agents.expire(t.oldest())
	}
	t.past.extents.concur(closed, t.open, t.now, 4*t.options.Operations)
	return closed
}

// oldest is when the first of the open operations began; now if there is none.
func (t *Timeline) oldest() int64 {
	oldest := t.now
	for _, op := range t.open {
		oldest = min(oldest, op.Start)
	}
	return oldest
}

// finish fills in what is known only now.
func (t *Timeline) finish(op *operation) {
	op.Runtime = t.node.runtime
	switch {
	case op.live == 0:
	case op.Closed == model.ClosedFinished:
		op.partial(cutOff)
	default:
		op.partial("still running")
	}
	if s := t.sandboxes.known[op.ContainerID]; s != nil {
		op.Sandbox, op.Running = s.Sandbox, s.ran
		op.identify(s.Pod)
	}
	t.abandon(op)
	t.past.before(op).link(op.Operation)
	for _, call := range op.Calls {
		t.node.networks.resolve(op, call)
		for _, run := range call.Runs {
			settle(run, t.now)
			call.End = max(call.End, run.End)
		}
		op.End = max(op.End, call.End)
	}
	op.resolve()
	op.blame()
	op.acquit()
	t.firsts.leave(op)
	t.afters.leave(t.now, op)
	for _, w := range op.works {
		t.connections.disconnect(w.own, t.now)
		t.connections.disconnect(w.shared, t.now)
	}
	for _, w := range op.works {
		w.know(t.now)
	}
	t.agents.dismiss(op, len(t.open) == 0)
}

// abandon stops following the processes of op.
func (t *Timeline) abandon(op *operation) {
	var left []*tree.Process
	t.tree.Each(func(of *tree.Process) {
		if p := kept(of); p != nil && p.op == op {
			left = append(left, of)
		}
	})
	slices.SortFunc(left, func(a, b *tree.Process) int { return cmp.Compare(a.Key, b.Key) }) // so that facts come in one order
	for _, of := range left {
		t.leave(t.now, of.Key, kept(of))
		t.tree.Remove(of.Key)
	}
}

// leave records what a process leaves behind: its locks, unfinished waits and connections.
func (t *Timeline) leave(now int64, key event.Process, p *process) {
	t.locks.over(key, p)
	t.locks.gaveUp(p)
	t.connections.disconnect(p, now)
}
