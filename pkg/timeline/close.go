package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

func (t *Timeline) over(op *active.Operation, now int64) model.Closed {
	idle, settle := now-op.End, int64(t.options.Settle)
	crowded := len(t.open) > t.options.Operations/2
	switch {
	case op.Commit != 0 && op.Commit <= now && !op.Live() && (idle >= settle || crowded || !t.agents.Sought(op)):
		return op.Ending
	case idle >= settle && !op.Live() && (idle >= patience*settle || !t.expects(op)):
		return model.ClosedSettled
	case now-op.Start >= int64(t.options.MaxHold):
		return model.ClosedHeld
	}
	return ""
}

// patience times Options.Settle: how long an unfinished operation waits. A busy node needs seconds between plugins.
const patience = 10

// expects reports whether more will come: the rest of a chain, or NRI's report of the running sandbox.
func (t *Timeline) expects(op *active.Operation) bool {
	for _, call := range op.Calls {
		last := call.Runs[len(call.Runs)-1]
		if last.Failed() || last.Unseen {
			return false
		}
	}
	if op.Kind == model.Setup && t.nri && !op.Unheard {
		return true
	}
	return slices.ContainsFunc(op.Calls, func(call *model.Call) bool {
		_, rest, known := t.networks.of(call)
		return known && len(rest) > 0 && call.Start >= t.networks.since
	})
}

func (t *Timeline) close(why func(*active.Operation) model.Closed) (closed []*model.Operation) {
	holding, over := map[string]bool{}, []*active.Operation(nil)
	t.open = slices.DeleteFunc(t.open, func(op *active.Operation) bool {
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
		t.agents.Expire(t.oldest())
	}
	t.past.extents.concur(closed, t.open, t.now, 4*t.options.Operations)
	return closed
}

func (t *Timeline) oldest() int64 {
	oldest := t.now
	for _, op := range t.open {
		oldest = min(oldest, op.Start)
	}
	return oldest
}

// finish completes a closed operation. Each step needs those before it.
func (t *Timeline) finish(op *active.Operation) {
	t.identify(op)
	t.abandon(op)
	t.locks.Close(op)                           // its agents' tries
	t.past.before(op).link(op.Operation)        // by its pod
	t.extend(op)                                // its images are complete
	op.Resolve(t.options.Wait > 0)              // facts by all names, and ends of images
	t.pods.Leave(t.now, op)                     // calls are complete
	t.agents.Close(op, t.now, len(t.open) == 0) // all connections have ended
}

func (t *Timeline) identify(op *active.Operation) {
	op.Runtime = t.node.Runtime
	switch {
	case !op.Live():
	case op.Closed == model.ClosedFinished:
		op.Lacks(t.cut)
	default:
		op.Lacks("still running")
	}
	if s := t.pods.Sandbox(op.ContainerID); s != nil {
		op.Sandbox, op.Running = s.Sandbox, s.Ran
		op.Identify(s.Pod)
	}
}

func (t *Timeline) extend(op *active.Operation) {
	for _, call := range op.Calls {
		t.networks.resolve(op, call, t.options.Settle, t.cut)
		for _, run := range call.Runs {
			active.Settle(run, t.now)
			call.End = max(call.End, run.End)
		}
		op.End = max(op.End, call.End)
	}
	t.undo(op)
}

// undoneWithin is shorter than a runtime needs to start a sandbox and be asked to stop it.
const undoneWithin = int64(50 * time.Millisecond)

// undo notes that the runtime removed a network although every plugin had succeeded. Without NRI the sandbox may have
// run, so only an immediate removal counts.
func (t *Timeline) undo(op *active.Operation) {
	call := op.Network()
	begun := call != nil
	if !begun && op.Kind == model.Setup { // lo's
		call = op.Calls[0]
	}
	if call == nil || !op.Began.Anchored() {
		return
	}
	run := call.Runs[0]
	t.noteReporting(op, run)
	if op.Running || op.Lost > 0 || slices.ContainsFunc(op.Calls, unsuccessful) {
		return
	}
	if begun {
		call.Broken = t.pods.Broken(op.ContainerID)
	}
	nri := t.nri && !op.Unheard && t.reports(run)
	switch {
	case begun && nri && call.Broken == nil && t.networks.lackLoopback(op):
		call.NeverRun = []string{loopback.Plugins[0].Type}
	case op.Closed != model.ClosedNext:
	case !nri && call.Broken == nil && op.Commit-op.End >= undoneWithin:
	case begun:
		call.Undone = op.Commit
	default:
		call.NeverRun = t.networks.unbegun(call)
	}
}

func (t *Timeline) noteReporting(op *active.Operation, run *model.Image) {
	if op.Running && len(t.reporting) < runtimesMax {
		t.reporting[run.Parent] = true
	}
}

func (t *Timeline) reports(run *model.Image) bool {
	return t.reporting[run.Parent] || run.ParentPID != 0 && run.ParentPID == t.registered
}

func unsuccessful(c *model.Call) bool {
	return len(c.NeverRun) > 0 ||
		slices.ContainsFunc(c.Runs, func(run *model.Image) bool { return !run.Ended || run.Unseen || run.Failed() })
}

// runtimesMax: each start adds a runtime.
const runtimesMax = 64

func (t *Timeline) abandon(op *active.Operation) {
	var left []*tree.Process
	t.tree.Each(func(of *tree.Process) {
		if p := active.Of(of); p != nil && p.Op == op {
			left = append(left, of)
		}
	})
	// Facts are recorded in this order.
	slices.SortFunc(left, func(a, b *tree.Process) int { return cmp.Compare(a.Key, b.Key) })
	for _, of := range left {
		t.leave(t.now, of.Key, active.Of(of))
		t.tree.Remove(of.Key)
	}
}

func (t *Timeline) leave(now int64, key event.Process, p *active.Process) {
	t.locks.Leave(key, p)
	p.Disconnect(now)
}
