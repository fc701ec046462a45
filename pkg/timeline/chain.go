package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func (t *Timeline) teardownBegins(now int64, e *event.Exec) []*model.Operation {
	for _, op := range t.open {
		if op.Kind == model.Setup && op.ContainerID == e.Call.ContainerID && op.Commit == 0 && mayJoin(e.Caller, op.Began) {
			op.Commit, op.Ending = now, model.ClosedNext
		}
	}
	return t.close(func(op *active.Operation) model.Closed {
		if op.Ending == model.ClosedNext && !op.Live() {
			return model.ClosedNext
		}
		return ""
	})
}

// operationOf finds or makes a run's operation; nil beyond the limit. A sandbox's two DELs, the second without netns,
// are one teardown if the first has not settled.
func (t *Timeline) operationOf(now int64, e *event.Exec) *active.Operation {
	kind := model.KindOf(e.Call.Command)
	named := e.Call.ContainerID != "" || kind == model.Other && e.Call.Command != ""
	if op := t.inProgress(now, e); op != nil && named {
		return op
	}
	if !t.admits(e.Caller) {
		return nil
	}
	op := active.New(&model.Operation{
		Kind: kind, ContainerID: e.Call.ContainerID,
		Start: now, End: now, Mono: t.node.Mono, Wall: t.node.Wall, MinSpan: t.options.MinSpan,
	}, e.Caller, active.Limits{Images: t.options.Images, Facts: t.options.Facts}, t.interfaces)
	// NRI's report may precede the first plugin's event.
	if s := t.pods.Sandbox(op.ContainerID); kind == model.Setup && s != nil && s.Ran && now < s.Since {
		op.Commit, op.Ending = s.Since, model.ClosedRunning
	}
	t.open = append(t.open, op)
	return op
}

func (t *Timeline) callFor(op *active.Operation, im *model.Image, e *event.Exec) *model.Call {
	for _, sameInterface := range []bool{true, false} {
		// Latest first: a repeated chain's second plugin belongs to the repetition.
		for _, call := range slices.Backward(op.Calls) {
			if (call.IfName == e.Call.IfName) == sameInterface && t.continues(call, im, e) {
				return call
			}
		}
	}
	call := &model.Call{
		Parent:  model.Parent{Trace: parent(im, e), Baggage: e.Call.Baggage},
		Command: e.Call.Command,
		IfName:  e.Call.IfName,
		NetNS:   e.Call.NetNS,
		Start:   im.Start,
		End:     im.Start,
	}
	op.Calls = append(op.Calls, call)
	return call
}

// parent falls back on the trusted thread that ran the first plugin.
func parent(first *model.Image, e *event.Exec) event.TraceContext {
	if t := first.Thread; e.Call.Trace.Parent == "" && t != nil && t.Trusted {
		return t.TraceContext
	}
	return e.Call.Trace
}

// waiting returns the process below the link that waits for a run which an agent started (Multus thick): its parent
// is not the chain's.
func waiting(op *active.Operation, im *model.Image, e *event.Exec) *active.Process {
	for _, call := range slices.Backward(op.Calls) {
		link := call.Live()
		if link != nil && call.Command == e.Call.Command && link.Parent != im.Parent && link.Start <= im.Start {
			return op.Below(call, link, nil)
		}
	}
	return nil
}

// continues reports whether a run is the next of a call's chain.
func (t *Timeline) continues(call *model.Call, im *model.Image, e *event.Exec) bool {
	first, last := call.Runs[0], call.Runs[len(call.Runs)-1]
	if call.Command != e.Call.Command {
		return false
	}
	switch {
	case first.Parent != im.Parent:
		return false
	case call.IfName != e.Call.IfName, call.NetNS != e.Call.NetNS, call.Trace.Parent != parent(first, e).Parent:
		return false
	case !last.Ended:
		return false // plugins of a chain run one after another
	case first.Run.Plugin == im.Run.Plugin:
		// A repeated call, or one plugin twice in a chain.
		return t.networks.begin(append(call.Plugins(), im.Run.Plugin), call.Command)
	}
	return true
}

// mayJoin reports whether a run by caller may join or end an operation. Only the runtime is trusted to name any
// container. An agent works for its callers.
func mayJoin(caller, began event.Caller) bool {
	return caller == event.CallerAgent || caller.Anchored() == began.Anchored() ||
		caller.Anchored() && began == event.CallerAgent
}

// inProgress finds a run's open operation, the runtime's first. NRI may report the end before the kernel's earlier
// events.
func (t *Timeline) inProgress(now int64, e *event.Exec) *active.Operation {
	kind := model.KindOf(e.Call.Command)
	for _, anchored := range []bool{true, false} {
		for _, op := range t.open {
			if op.Kind == kind && op.ContainerID == e.Call.ContainerID && op.Began.Anchored() == anchored &&
				mayJoin(e.Caller, op.Began) && op.Until == 0 && (op.Commit == 0 || now < op.Commit) {
				return op
			}
		}
	}
	return nil
}

// admits reports whether an operation has room. Half of the places are for the runtime's operations, so imitated
// plugins cannot use all.
func (t *Timeline) admits(caller event.Caller) bool {
	if len(t.open) >= t.options.Operations {
		t.stats.Refused++
		return false
	}
	if caller.Anchored() {
		return true
	}
	taken := 0
	for _, op := range t.open {
		if !op.Began.Anchored() {
			taken++
		}
	}
	if taken >= t.options.Operations/2 {
		t.stats.Unanchored++
		return false
	}
	return true
}
