package timeline

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// forget is how long a removed sandbox is remembered: its last DEL may still be open.
const forget = time.Minute

// cutOff is why an operation is partial that cniscope did not see the end of.
const cutOff = "still under way when cniscope ended"

// sandbox is what NRI said of one, last.
type sandbox struct {
	*event.Sandbox
	told    int64 // when that was
	ran     bool  // it said that the sandbox runs
	since   int64 // when it said that first
	removed int64 // when it was removed; 0 if it was not
}

func (t *Timeline) sandbox(now int64, s *event.Sandbox) {
	t.nri = true
	known := t.sandboxes[s.ID]
	switch {
	case known == nil:
		t.makeRoom()
		known = &sandbox{}
		t.sandboxes[s.ID] = known
	case len(s.IPs) == 0 && known.Sandbox != nil:
		// Addresses are not repeated once the sandbox stops.
		merged := *s
		merged.IPs = known.IPs
		s = &merged
	}
	known.Sandbox, known.told = s, now
	switch s.Phase {
	case event.SandboxRemoved:
		known.removed = now
	case event.SandboxRunning, event.SandboxPresent:
		if !known.ran {
			known.since = now
		}
		known.ran = true
		for _, op := range t.open {
			if op.Kind == Setup && op.ContainerID == s.ID && op.commit == 0 {
				op.commit, op.closed = now, ClosedRunning
			}
		}
	}
}

// makeRoom forgets the sandbox that was silent longest when there are too many: a
// runtime that was restarted never says that the pods of its former life are gone.
func (t *Timeline) makeRoom() {
	if len(t.sandboxes) < 4*t.options.Operations {
		return
	}
	oldest := ""
	for id, s := range t.sandboxes {
		if oldest == "" || s.told < t.sandboxes[oldest].told || s.told == t.sandboxes[oldest].told && id < oldest {
			oldest = id
		}
	}
	delete(t.sandboxes, oldest)
}

// tick closes what is over at now: everything before now has been applied.
func (t *Timeline) tick(now int64) []*Operation {
	t.forgetLosses(now)
	if now-t.swept >= int64(time.Second) {
		t.swept = now
		t.locks.prune(now)
		t.expire(now)
	}
	for id, s := range t.sandboxes {
		if s.removed != 0 && now-s.removed > int64(forget) {
			delete(t.sandboxes, id)
		}
	}
	return t.close(func(op *operation) Closed { return t.over(op, now) })
}

// over says why an operation is over at now; nothing if it is not.
func (t *Timeline) over(op *operation, now int64) Closed {
	switch {
	case op.live == 0 && op.commit != 0 && op.commit <= now:
		return op.closed
	case op.live == 0 && now-op.End >= int64(t.options.Settle) && (now-op.End >= patience*int64(t.options.Settle) || !t.expects(op)):
		return ClosedSettled
	case now-op.Start >= int64(t.options.MaxHold):
		return ClosedHeld
	}
	return ""
}

// patience is how many times Options.Settle an operation waits that is known to be
// unfinished: a node with much to do may take seconds between two plugins, and from the
// last of them to a sandbox that runs.
const patience = 10

// expects tells whether something is still to come: the rest of a chain, or the word of NRI
// that the sandbox runs.
func (t *Timeline) expects(op *operation) bool {
	for _, call := range op.Calls {
		last := call.Runs[len(call.Runs)-1]
		if last.Failed() || last.Unseen {
			return false // whatever was to come does not
		}
	}
	if op.Kind == Setup && t.nri && !op.unheard {
		return true
	}
	return slices.ContainsFunc(op.Calls, func(call *Call) bool {
		_, rest, known := t.network(call)
		return known && len(rest) > 0 && call.Start >= t.configured
	})
}

// unheard says that the word of NRI on what is open may have been lost: nobody waits for
// it any more.
func (t *Timeline) unheard() {
	for _, op := range t.open {
		op.unheard = true
	}
}

// close ends the operations for which why gives a reason.
func (t *Timeline) close(why func(*operation) Closed) (closed []*Operation) {
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
	t.concur(closed)
	return closed
}

// finish fills in what is known only now.
func (t *Timeline) finish(op *operation) {
	op.Runtime = t.runtime
	switch {
	case op.live == 0:
	case op.Closed == ClosedFinished:
		op.partial(cutOff)
	default:
		op.partial("still running")
	}
	if s := t.sandboxes[op.ContainerID]; s != nil {
		op.Sandbox, op.Running = s.Sandbox, s.ran
		op.identify(s.Pod)
	}
	t.abandon(op)
	t.before(op).link(op.Operation)
	for _, call := range op.Calls {
		t.resolve(op, call)
		for _, run := range call.Runs {
			run.settle(t.now)
			call.End = max(call.End, run.End)
		}
		op.End = max(op.End, call.End)
	}
	op.nameInterfaces()
	op.unanswered()
	t.blame(op)
	op.acquit()
	t.leave(op)
	t.dismiss(op)
}

// abandon follows the processes of op no longer.
func (t *Timeline) abandon(op *operation) {
	var keys []event.Process
	for key, p := range t.processes {
		if p.op == op {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys) // what they leave behind comes in one order
	for _, key := range keys {
		t.suspects.over(key, t.processes[key])
		t.gaveUp(t.processes[key])
		t.disconnect(t.processes[key], t.now)
		delete(t.processes, key)
		t.tree.Remove(key)
	}
}

// settle gives an end to what has none. What is still under way lasts until now; what
// outlived its run is followed no further than the run.
func (im *Image) settle(now int64) {
	if !im.Ended && !im.Outlived {
		im.End = max(im.End, now)
	}
	for _, child := range im.Children {
		child.settle(now)
		if child.Outlived && !child.Ended {
			child.End = max(child.Start, im.End)
		}
	}
	im.works(func(w *Work) {
		w.Own.settle(now)
		w.Shared.settle(now)
	})
}
