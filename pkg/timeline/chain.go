package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/agents"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// A run that no run started is the next link of an open call's chain, or the first of a new
// call; and that belongs to an open operation, or begins one.

// teardownBegins closes the setup of a container that is being torn down.
func (t *Timeline) teardownBegins(now int64, e *event.Exec) []*model.Operation {
	for _, op := range t.open {
		if op.Kind == model.Setup && op.ContainerID == e.Call.ContainerID && op.Commit == 0 && may(e.Caller, op.Began) {
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

// operationOf finds or makes the operation of a run; nil beyond the limit. The DELs
// of a sandbox (it gets two, the second with an empty netns) are calls of one teardown
// if the second comes before the first has settled. What began before something was said
// that ends an operation is still part of it: NRI may be heard before the kernel.
func (t *Timeline) operationOf(now int64, e *event.Exec) *active.Operation {
	kind := model.KindOf(e.Call.Command)
	if op := t.underWay(now, e); op != nil {
		return op
	}
	if !t.admits(e.Caller) {
		return nil
	}
	op := active.New(&model.Operation{
		Kind: kind, ContainerID: e.Call.ContainerID,
		Start: now, End: now, Mono: t.node.Mono, Wall: t.node.Wall, MinSpan: t.options.MinSpan,
	}, e.Caller, active.Limits{Images: t.options.Images, Facts: t.options.Facts}, t.interfaces)
	// NRI may have spoken before the first plugin's event was even read.
	if s := t.pods.Sandbox(op.ContainerID); kind == model.Setup && s != nil && s.Ran && now < s.Since {
		op.Commit, op.Ending = s.Since, model.ClosedRunning
	}
	t.open = append(t.open, op)
	return op
}

// callFor finds or makes the call that a run is a link of.
func (t *Timeline) callFor(op *active.Operation, im *model.Image, e *event.Exec) *model.Call {
	for _, sameInterface := range []bool{true, false} {
		// The latest first: where a chain is run again, its second plugin belongs to the second time.
		for _, call := range slices.Backward(op.Calls) {
			if (call.IfName == e.Call.IfName) == sameInterface && t.continues(call, im, e) {
				return call
			}
		}
	}
	call := &model.Call{
		Parent:  model.Parent{Trace: e.Call.Trace},
		Command: e.Call.Command,
		IfName:  e.Call.IfName,
		NetNS:   e.Call.NetNS,
		Start:   im.Start,
		End:     im.Start,
	}
	op.Calls = append(op.Calls, call)
	return call
}

// waiting returns the process of a run that somebody else started than the chain's, perhaps for another
// interface, while a link of the chain runs: an agent, whose connection was not seen (Multus thick). It lies
// below the link that waits for it. Nil if there is none.
func waiting(op *active.Operation, im *model.Image, e *event.Exec) *active.Process {
	for _, call := range slices.Backward(op.Calls) {
		link := call.Live()
		if link != nil && call.Command == e.Call.Command && link.Parent != im.Parent && link.Start <= im.Start {
			return op.Below(call, link, agents.Certain(nil))
		}
	}
	return nil
}

// continues tells the next run of a call's chain from the first of another call.
func (t *Timeline) continues(call *model.Call, im *model.Image, e *event.Exec) bool {
	first, last := call.Runs[0], call.Runs[len(call.Runs)-1]
	if call.Command != e.Call.Command {
		return false
	}
	switch {
	case first.Parent != im.Parent:
		return false
	case call.IfName != e.Call.IfName, call.NetNS != e.Call.NetNS, call.Trace.Parent != e.Call.Trace.Parent:
		return false
	case !last.Ended:
		return false // plugins of one chain run one after another
	case first.Run.Plugin == im.Run.Plugin:
		// Either the whole call again, or a chain that has the plugin twice.
		return t.networks.begin(append(call.Plugins(), im.Run.Plugin), call.Command)
	}
	return true
}

// may reports whether a run that caller started may join or end an operation that somebody else
// began. Whoever is not the runtime's can name any container, so its operations are kept apart
// from those of the runtime. An agent works for whoever calls it.
func may(caller, began event.Caller) bool {
	return caller == event.CallerAgent || caller.Anchored() == began.Anchored() ||
		caller.Anchored() && began == event.CallerAgent
}

// underWay returns the open operation that a run belongs to, those of the runtime first; nil
// if there is none.
func (t *Timeline) underWay(now int64, e *event.Exec) *active.Operation {
	kind := model.KindOf(e.Call.Command)
	for _, anchored := range []bool{true, false} {
		for _, op := range t.open {
			if op.Kind == kind && op.ContainerID == e.Call.ContainerID && op.Began.Anchored() == anchored &&
				may(e.Caller, op.Began) && takes(op, now) {
				return op
			}
		}
	}
	return nil
}

// admits reports whether there is room for an operation that caller begins. Those that the runtime did not
// begin have half of the places, so that whoever passes for a plugin leaves the runtime its own.
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

// takes reports whether a run that began at now still belongs to op. What NRI says may come
// before events of the kernel that are older: those are only read then.
func takes(op *active.Operation, now int64) bool {
	return op.Until == 0 && (op.Commit == 0 || now < op.Commit)
}
