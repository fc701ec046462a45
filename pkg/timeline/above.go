package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// A call's parent span is in its environment (containerd >= 2.4), or reported later by the runtime (event.Above): an
// ended operation waits for it up to Options.Wait.

const (
	// abovesMax bounds the runtime's spans: a setup has three, a teardown one for each request.
	abovesMax = 16
	// slip is the calendar clock's drift until spans are reported: adjtimex(2) slews by 0.5 ms per second, for half a
	// minute.
	slip = 20 * time.Millisecond
)

// awaits sets the parents of an ended operation's calls, and reports whether it must wait. holding are sandboxes with
// an earlier waiting operation.
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
		// At most half of the places, so that new operations have room.
		if len(t.open) > t.options.Operations/2 {
			t.orphan(op)
			return false
		}
		op.Until, op.Ending = t.now+int64(t.options.Wait), op.Closed
		if op.Commit == 0 {
			op.Commit = t.now
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

// unsampled reports whether, according to NRI's call (containerd >= 2.2), the runtime does not sample the request.
func (t *Timeline) unsampled(op *active.Operation) bool {
	s := t.pods.Sandbox(op.ContainerID)
	if s == nil || (op.Kind == model.Setup) != (s.Phase == event.SandboxRunning) {
		return false
	}
	return w3c.Parse(s.Trace).Unsampled()
}

func (t *Timeline) awaitsStart(s *event.Sandbox, ns int64) bool {
	return ns < int64(t.options.Wait) && !w3c.Parse(s.Trace).Unsampled()
}

// adopt gives calls the runtime's narrowest span around them, and reports whether all have one.
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

// around reports whether a runtime's span is around a call. start must be before the span's end; otherwise slip is
// allowed.
func around(a *event.Above, start, end int64) bool {
	return a.Start-int64(slip) <= start && start < a.End && end <= a.End+int64(slip)
}
