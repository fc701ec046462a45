package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// belated is a loss of a run that is not known yet: losses are told as they happen, events
// when they are read.
type belated struct {
	*event.Lost
	told int64
	of   []*operation // whose it turned out to be
}

func (t *Timeline) lost(now int64, l *event.Lost) {
	switch {
	case l.Process != "":
		ops := t.touched(l.Process)
		if len(ops) == 0 {
			t.later(now, l)
		}
		for _, op := range ops {
			op.lose(l)
		}
	case !l.OfProcesses(): // it touches names, not times
		t.unheard()
	default: // nobody knows whose it was
		for _, op := range t.open {
			op.lose(l)
		}
	}
}

// later keeps a loss until everything that was sent before it was told has been read.
func (t *Timeline) later(now int64, l *event.Lost) {
	if len(t.early) >= t.options.Operations {
		t.stats.Late++
		t.early = slices.Delete(t.early, 0, 1)
	}
	t.early = append(t.early, belated{Lost: l, told: now})
}

// belongs says that what a root does since then is an operation's: so are the losses that
// were told before that was known.
func (t *Timeline) belongs(root event.Process, op *operation, since int64) {
	for i := range t.early {
		if b := &t.early[i]; b.Process == root && b.told >= since && !slices.Contains(b.of, op) {
			b.of = append(b.of, op)
			op.lose(b.Lost)
		}
	}
}

// forgetLosses drops those of roots that nobody will tell of any more: strangers, and runs
// that are over.
func (t *Timeline) forgetLosses(now int64) {
	t.early = slices.DeleteFunc(t.early, func(b belated) bool {
		if b.told < now && len(b.of) == 0 {
			t.stats.Late++
		}
		return b.told < now
	})
}

// touched lists the open operations that lack what was lost below a root: the run's own,
// which may go on when its first process is over, or those that a server works for.
func (t *Timeline) touched(root event.Process) (ops []*operation) {
	if p := t.processes[root]; p != nil {
		return []*operation{p.op}
	}
	if a := t.agents[root]; a != nil {
		for _, c := range a.calls {
			if !slices.Contains(ops, c.owner.op) {
				ops = append(ops, c.owner.op)
			}
		}
		return ops
	}
	for _, op := range t.open {
		for _, call := range op.Calls {
			if slices.ContainsFunc(call.Runs, func(run *Image) bool { return run.Process == root }) {
				return []*operation{op}
			}
		}
	}
	return nil
}

func (op *operation) lose(l *event.Lost) {
	op.Lost += l.Count
	op.partial("lost events: " + l.Reason)
}
