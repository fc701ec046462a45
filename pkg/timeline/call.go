package timeline

import (
	"path"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// root takes a run that no run started: the next link of an open call's chain, or the
// first of a new one.
func (t *Timeline) root(now int64, e *event.Exec) (closed []*Operation) {
	if KindOf(e.Call.Command) == Teardown {
		closed = t.teardownBegins(now, e)
	}
	op := t.operationOf(now, e)
	if op == nil || !op.keep(t.options.Images) {
		t.tree.Remove(e.Process)
		return closed
	}
	if e.InFlight {
		op.partial("already running when cniscope started")
	}
	im := newImage(now, e)
	im.Run = &Run{Plugin: path.Base(e.File), Command: e.Call.Command, forker: e.Parent}
	call := t.callFor(op, im, e)
	call.Runs = append(call.Runs, im)
	call.Seen = call.Seen || t.seeing
	op.live++
	op.identify(e.Call.Pod)
	t.processes[e.Process] = &process{op: op, up: im, image: im, run: im, call: call}
	t.belongs(e.Process, op, now)
	return closed
}

// teardownBegins closes the setup of a container that is being torn down.
func (t *Timeline) teardownBegins(now int64, e *event.Exec) []*Operation {
	for _, op := range t.open {
		if op.Kind == Setup && op.ContainerID == e.Call.ContainerID && op.commit == 0 && may(e.Caller, op.began) {
			op.commit, op.closed = now, ClosedNext
		}
	}
	return t.close(func(op *operation) Closed {
		if op.closed == ClosedNext && op.live == 0 {
			return ClosedNext
		}
		return ""
	})
}

// operationOf finds or makes the operation of a run; nil beyond the limit. The DELs
// of a sandbox (it gets two, the second with an empty netns) are calls of one teardown
// if the second comes before the first has settled. What began before something was said
// that ends an operation is still part of it: NRI may be heard before the kernel.
func (t *Timeline) operationOf(now int64, e *event.Exec) *operation {
	kind := KindOf(e.Call.Command)
	if op := t.underWay(now, e); op != nil {
		return op
	}
	if !t.admits(e.Caller) {
		return nil
	}
	op := &operation{Operation: &Operation{
		Kind: kind, ContainerID: e.Call.ContainerID,
		Start: now, End: now, Mono: t.mono, Wall: t.wall, MinSpan: t.options.MinSpan,
	}, names: interfaces{}, began: e.Caller}
	// NRI may have spoken before the first plugin's event was even read.
	if s := t.sandboxes[op.ContainerID]; kind == Setup && s != nil && s.ran && now < s.since {
		op.commit, op.closed = s.since, ClosedRunning
	}
	t.open = append(t.open, op)
	return op
}

// takes tells whether a run that began at now still belongs to op. What NRI says may come
// before events of the kernel that are older: those are only read then.
func (op *operation) takes(now int64) bool {
	return op.until == 0 && (op.commit == 0 || now < op.commit)
}

// identify fills in what is not known of the pod.
func (op *operation) identify(pod event.Pod) {
	if op.Pod == (event.Pod{}) {
		op.Pod = pod
	}
}

// callFor finds or makes the call that a run is a link of.
func (t *Timeline) callFor(op *operation, im *Image, e *event.Exec) *Call {
	for _, sameInterface := range []bool{true, false} {
		// The latest first: where a chain is run again, its second plugin belongs to the
		// second time.
		for _, call := range slices.Backward(op.Calls) {
			if (call.IfName == e.Call.IfName) == sameInterface && t.continues(call, im, e) {
				return call
			}
		}
	}
	call := &Call{
		Command: e.Call.Command, IfName: e.Call.IfName, NetNS: e.Call.NetNS,
		Trace: e.Call.Trace, Start: im.Start, End: im.Start,
	}
	op.Calls = append(op.Calls, call)
	return call
}

// continues tells the next run of a call's chain from the first of another call.
func (t *Timeline) continues(call *Call, im *Image, e *event.Exec) bool {
	first, last := call.Runs[0], call.Runs[len(call.Runs)-1]
	if call.Command != e.Call.Command {
		return false
	}
	if first.Run.forker != im.Run.forker {
		// An agent runs it on behalf of a plugin (Multus thick), perhaps for another
		// interface: it belongs to the call that waits for it.
		return !last.Ended && last.Start <= im.Start
	}
	switch {
	case call.IfName != e.Call.IfName, call.NetNS != e.Call.NetNS, call.Trace.Parent != e.Call.Trace.Parent:
		return false
	case !last.Ended:
		return false // plugins of one chain run one after another
	case first.Run.Plugin == im.Run.Plugin:
		// Either the whole call again, or a chain that has the plugin twice.
		return t.chainHas(append(call.plugins(), im.Run.Plugin), call.Command)
	}
	return true
}

// plugins lists the chain as far as it was run, without what an agent ran in between.
func (c *Call) plugins() (names []string) {
	for _, run := range c.Runs {
		if run.Run.forker == c.Runs[0].Run.forker {
			names = append(names, run.Run.Plugin)
		}
	}
	return names
}
