package active

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
func (p *Process) suspect() *suspect {
	op := p.Op
	for _, s := range op.suspects {
		if s.run == p.Run {
			return s
		}
	}
	s := &suspect{op: op.Operation, call: p.Call, run: p.Run}
	op.suspects = append(op.suspects, s)
	return s
}

func (s *suspects) over(key event.Process, p *Process) {
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
func (s *suspects) run(key event.Process, waiter *Process) *suspect {
	had := s.by[key]
	if p := Of(s.tree.Get(key)); p != nil {
		had = p.suspect()
	}
	if had == nil || had.run == waiter.Run {
		return nil
	}
	return had
}

// Holding finds the run that had what a process waited for; nil if that is not known.
func (s *suspects) Holding(w *event.Wait, waiter *Process) *suspect {
	if w.Holder == nil || w.Kind != event.WaitMutex {
		return nil
	}
	return s.run(w.Holder.Process, waiter)
}

// stands reports whether im stands for an agent itself.
func (p *Process) stands(im *model.Image) bool {
	if p.Work == nil {
		return false
	}
	own, shared := p.Work.Images()
	return im == own || im == shared
}

// acquit replaces the runs of op, which is over, by their names, so that op can be freed.
func (op *Operation) acquit() {
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
func (p *Process) accuse(wait *model.Wait, s *suspect) {
	if im := p.Current(); s != nil && !p.stands(im) {
		p.Op.accused = append(p.Op.accused, accused{wait, s})
	}
}

// suspect is a run that holds or held a lock. Once its operation is over, only its name is kept.
type suspect struct {
	op    *model.Operation
	call  *model.Call
	run   *model.Image
	blame *model.Blame
}

// known returns the run's name; nil as long as it may still change, since what is above
// its call may be told when that is over.
func (s *suspect) known(told bool) *model.Blame {
	if s.blame != nil || told && s.call.Trace.Parent == "" {
		return s.blame
	}
	return s.name()
}

func (s *suspect) name() *model.Blame {
	return &model.Blame{Call: s.op.KeyOf(s.call), Pod: s.op.Pod, Process: s.run.Process, Start: s.run.Start}
}
