package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// What is above a call is in its environment (containerd >= 2.4), or the runtime tells it by its own spans,
// when they are over (event.Above). An operation that is over waits for that, if Options.Wait says so:
// nothing joins it any more, only what is above its calls may still come.

const (
	// abovesMax bounds what one operation remembers of the runtime's spans: a setup has
	// three, a teardown one for each request.
	abovesMax = 16
	// slip is how much the calendar clock, which the runtime's spans are stamped by, may
	// have drifted against the monotonic one until they are told: adjtimex(2) slews by
	// 0.5 ms a second at most, and half a minute is long for a span to be told.
	slip = 20 * time.Millisecond
)

// awaits gives the calls of op, which is over, their parents, and reports whether op must wait. holding
// are the sandboxes with an earlier operation waiting: a teardown must know what its setup hangs under.
func (t *Timeline) awaits(op *active.Operation, holding map[string]bool) bool {
	if op.Closed == model.ClosedHeld || op.Closed == model.ClosedFinished || op.Kind == model.Other || !op.Vouched() {
		return false
	}
	parented := adopt(op)
	if t.options.Wait == 0 {
		return false
	}
	known := parented || t.unsampled(op)
	if known && !holding[op.ContainerID] {
		return false
	}
	if op.Until == 0 {
		// Whatever waits takes the place of what goes on: half of the places at most.
		if len(t.open) > t.options.Operations/2 {
			t.orphan(op)
			return false
		}
		op.Until, op.Ending = t.now+int64(t.options.Wait), op.Closed
		if op.Commit == 0 {
			op.Commit = t.now // nothing joins it any more
		}
	}
	if t.now < op.Until {
		holding[op.ContainerID] = true
		return true
	}
	if !known {
		t.orphan(op)
	}
	return false
}

func (t *Timeline) orphan(op *active.Operation) {
	t.stats.Orphaned++
	t.past.orphans.put(op.ContainerID, op.Key())
}

// unsampled reports whether the runtime records no span of what op is part of, as NRI's call
// out of the same request says (containerd >= 2.2).
func (t *Timeline) unsampled(op *active.Operation) bool {
	s := t.pods.Sandbox(op.ContainerID)
	if s == nil || (op.Kind == model.Setup) != (s.Phase == event.SandboxRunning) {
		return false
	}
	return w3c.Parse(s.Trace).Unsampled()
}

// adopt gives each call the narrowest of the runtime's spans that was under way as long as
// it was, and reports whether all have something above them.
func adopt(op *active.Operation) bool {
	all := true
	for _, call := range op.Calls {
		if call.Trace.Parent != "" {
			continue
		}
		var best *event.Above
		for _, a := range op.Aboves {
			if around(a, call.Start, call.End) && (best == nil || a.End-a.Start < best.End-best.Start) {
				best = a
			}
		}
		if best == nil {
			all = false
			continue
		}
		call.Trace, call.Told = best.Trace, true
	}
	return all
}

// around reports whether a span, give or take slip, covers start to end; start must be before its end.
func around(a *event.Above, start, end int64) bool {
	return a.Start-int64(slip) <= start && start < a.End && end <= a.End+int64(slip)
}
