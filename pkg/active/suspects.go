package active

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// recentRuns bounds exited runs that stay: a wait for an exited process's lock ends later.
const recentRuns = 256

type suspects struct {
	tree  *tree.Tree
	by    map[event.Process]*suspect
	order []event.Process
}

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

// run returns a lock holder's run; nil if it is the waiter's own.
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

// Holding returns the run that held what a process waited for, if known.
func (s *suspects) Holding(w *event.Wait, waiter *Process) *suspect {
	if w.Holder == nil || w.Kind != event.WaitMutex {
		return nil
	}
	return s.run(w.Holder.Process, waiter)
}

// acquit replaces runs of a closed op by their names, so op can be freed.
func (op *Operation) acquit() {
	for _, s := range op.suspects {
		s.blame = s.name()
		s.op, s.call, s.run = nil, nil, nil
	}
	op.suspects = nil
}

type accused struct {
	wait *model.Wait
	*suspect
}

func (p *Process) accuse(wait *model.Wait, s *suspect) {
	if w := p.work; w != nil {
		if im := p.Current(); im == w.Own || im == w.Shared {
			return
		}
	}
	if s != nil {
		p.Op.accused = append(p.Op.accused, accused{wait, s})
	}
}

// suspect is a run that holds or held a lock. After its operation only blame remains.
type suspect struct {
	op    *model.Operation
	call  *model.Call
	run   *model.Image
	blame *model.Blame
}

// known returns the blame, or nil if its call's parent may still be reported.
func (s *suspect) known(told bool) *model.Blame {
	if s.blame != nil || told && s.call.Trace.Parent == "" {
		return s.blame
	}
	return s.name()
}

func (s *suspect) name() *model.Blame {
	return &model.Blame{Call: s.op.KeyOf(s.call), Pod: s.op.Pod, Process: s.run.Process, Start: s.run.Start}
}
