package timeline

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// recentRuns bounds the exited processes that are remembered: a wait for a lock that one of them
// held ends after it.
const recentRuns = 256

// suspects finds the run of a process: one that belongs to an open operation, or that ended lately.
type suspects struct {
	tree  *tree.Tree
	by    map[event.Process]*suspect
	order []event.Process
}

// suspect returns the run that p belongs to as others may name it; nil if there is none.
func (p *process) suspect() *suspect {
	op := p.op
	for _, s := range op.suspects {
		if s.run == p.run {
			return s
		}
	}
	s := &suspect{op: op.Operation, call: p.call, run: p.run}
	op.suspects = append(op.suspects, s)
	return s
}

func (s *suspects) over(key event.Process, p *process) {
	if _, known := s.by[key]; !known {
		if len(s.order) >= recentRuns {
			delete(s.by, s.order[0])
			s.order = s.order[1:]
		}
		s.order = append(s.order, key)
	}
	s.by[key] = p.suspect()
}

// run finds the run of a process that has a lock; nil if it belongs to none, or if it is the waiter's own.
func (s *suspects) run(key event.Process, waiter *process) *suspect {
	had := s.by[key]
	if p := kept(s.tree.Get(key)); p != nil {
		had = p.suspect()
	}
	if had == nil || had.run == waiter.run {
		return nil
	}
	return had
}

// holding finds the run that had what a process waited for; nil if that is not known.
func (s *suspects) holding(w *event.Wait, waiter *process) *suspect {
	if w.Holder == nil || w.Kind != event.WaitMutex {
		return nil
	}
	return s.run(w.Holder.Process, waiter)
}

// acquit replaces the runs of op, which is over, by their names, so that op can be freed.
func (op *operation) acquit() {
	for _, s := range op.suspects {
		s.blame = s.name()
		s.op, s.call, s.run = nil, nil, nil
	}
	op.suspects = nil
}

// accused is the run that held what another one waited for.
type accused struct {
	wait *model.Wait
	*suspect
}

// accuse notes which run held what p waited for; nil if that is not known, or if an agent itself waited.
func (p *process) accuse(wait *model.Wait, s *suspect) {
	if im := p.current(); s != nil && (p.work == nil || im != p.work.Own && im != p.work.Shared) {
		p.op.accused = append(p.op.accused, accused{wait, s})
	}
}

// blame resolves each wait of op to the run that held the lock.
func (op *operation) blame() {
	for _, a := range op.accused {
		a.wait.Blame = a.known(op.options.Wait > 0)
	}
}
