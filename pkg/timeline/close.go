package timeline

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// cutOff is why an operation is partial that cniscope did not see the end of.
const cutOff = "still under way when cniscope ended"

// over says why an operation is over at now; nothing if it is not.
func (t *Timeline) over(op *active.Operation, now int64) model.Closed {
	switch {
	case !op.Live() && op.Commit != 0 && op.Commit <= now:
		return op.Ending
	case !op.Live() && now-op.End >= int64(t.options.Settle) && (now-op.End >= patience*int64(t.options.Settle) || !t.expects(op)):
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
func (t *Timeline) expects(op *active.Operation) bool {
	for _, call := range op.Calls {
		last := call.Runs[len(call.Runs)-1]
		if last.Failed() || last.Unseen {
			return false // a failed chain does not go on
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

// close ends the operations for which why gives a reason.
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

// oldest is when the first of the open operations began; now if there is none.
func (t *Timeline) oldest() int64 {
	oldest := t.now
	for _, op := range t.open {
		oldest = min(oldest, op.Start)
	}
	return oldest
}

// finish fills in what is known only now. Each step needs those before it.
func (t *Timeline) finish(op *active.Operation) {
	t.identify(op)                              // whose it is, for all that names it from now on
	t.abandon(op)                               // its processes leave their last facts: waits, and the ends of connections
	t.past.before(op).link(op.Operation)        // what it follows on, by its pod
	t.extend(op)                                // now nothing is added to its images: networks, and when all of them ended
	op.Resolve(t.options.Wait > 0)              // facts, by names that any of them may have told, and by ends of images
	t.pods.Leave(t.now, op)                     // what may still come for its pod, by calls that are whole
	t.agents.Close(op, t.now, len(t.open) == 0) // what agents did, also for others, by the ends of all connections
}

// identify says whose an operation is, on which runtime, and why not all of it may have been seen.
func (t *Timeline) identify(op *active.Operation) {
	op.Runtime = t.node.Runtime
	switch {
	case !op.Live():
	case op.Closed == model.ClosedFinished:
		op.Lacks(cutOff)
	default:
		op.Lacks("still running")
	}
	if s := t.pods.Sandbox(op.ContainerID); s != nil {
		op.Sandbox, op.Running = s.Sandbox, s.Ran
		op.Identify(s.Pod)
	}
}

// extend names the networks of an operation's calls, and ends what is still in progress.
func (t *Timeline) extend(op *active.Operation) {
	for _, call := range op.Calls {
		t.networks.resolve(op, call, t.options.Settle)
		for _, run := range call.Runs {
			active.Settle(run, t.now)
			call.End = max(call.End, run.End)
		}
		op.End = max(op.End, call.End)
	}
}

// abandon stops following the processes of op.
func (t *Timeline) abandon(op *active.Operation) {
	var left []*tree.Process
	t.tree.Each(func(of *tree.Process) {
		if p := active.Of(of); p != nil && p.Op == op {
			left = append(left, of)
		}
	})
	slices.SortFunc(left, func(a, b *tree.Process) int { return cmp.Compare(a.Key, b.Key) }) // so that facts come in one order
	for _, of := range left {
		t.leave(t.now, of.Key, active.Of(of))
		t.tree.Remove(of.Key)
	}
}

// leave records what a process leaves behind: its locks, unfinished waits and connections.
func (t *Timeline) leave(now int64, key event.Process, p *active.Process) {
	t.locks.Leave(key, p)
	p.Disconnect(now)
}
