package timeline

import "github.com/cniscope/cniscope/pkg/event"

// may reports whether a run that caller started may join or end an operation that somebody else
// began. Whoever is not the runtime's can name any container, so its operations are kept apart
// from those of the runtime. An agent works for whoever calls it.
func may(caller, began event.Caller) bool {
	return caller == event.CallerAgent || caller.Anchored() == began.Anchored() ||
		caller.Anchored() && began == event.CallerAgent
}

// vouched tells whether the runtime stands for an operation: it began it, or an agent did that
// answered one of its calls. Only that hangs under what the runtime tells, and precedes others of
// the runtime's.
func (op *operation) vouched() bool {
	return op.began.Anchored() || op.began == event.CallerAgent
}

// before is what went before an operation of that kind of trust.
func (t *Timeline) before(op *operation) *history {
	if op.vouched() {
		return t.history
	}
	return t.hearsay
}

// underWay returns the open operation that a run belongs to, those of the runtime first; nil
// if there is none.
func (t *Timeline) underWay(now int64, e *event.Exec) *operation {
	kind := KindOf(e.Call.Command)
	for _, anchored := range []bool{true, false} {
		for _, op := range t.open {
			if op.Kind == kind && op.ContainerID == e.Call.ContainerID && op.began.Anchored() == anchored &&
				may(e.Caller, op.began) && op.takes(now) {
				return op
			}
		}
	}
	return nil
}

// admits tells whether there is room for an operation that caller begins. Those that the
// runtime did not begin have half of the places, so that whoever passes for a plugin leaves
// the runtime its own.
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
		if !op.began.Anchored() {
			taken++
		}
	}
	if taken >= t.options.Operations/2 {
		t.stats.Unanchored++
		return false
	}
	return true
}
