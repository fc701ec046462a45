package pods

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const (
	// afterImages includes descendants.
	afterMax    = 16
	afterImages = 64
)

type afters struct {
	limit   int
	dropped uint64 // programs over a pod's limit
	known   map[string]*finishedSetup
	abandon func(*active.Operation) // stops following an operation's processes
	over    []model.After
}

type finishedSetup struct {
	of    model.After // without an image
	until int64
	// op is freed once closed; work then stands for it.
	op, work *active.Operation
	count    int
	running  map[event.Process]*model.Image
	ended    []*model.Image
}

// After returns the process for a program that an agent runs after an ADD. The program must name the pod.
func (as *afters) After(now int64, e *event.Exec, by *event.Actor, open []*active.Operation) *active.Process {
	if len(e.Mentions) != 1 {
		return nil
	}
	s := as.of(open, e.Mentions[0])
	if s == nil || now > s.until {
		return nil
	}
	if s.count >= afterMax {
		as.dropped++
		return nil
	}
	s.count++
	s.running[e.Process] = nil
	run := s.of.Run()
	call := &model.Call{Command: s.of.Command, IfName: s.of.IfName, Runs: []*model.Image{run}}
	return s.work.Below(call, run, by)
}

func (as *afters) of(open []*active.Operation, container string) *finishedSetup {
	if s := as.known[container]; s != nil {
		return s
	}
	for _, op := range open {
		if op.ContainerID == container && op.Kind == model.Setup && !op.Live() && op.Vouched() {
			return as.add(op)
		}
	}
	return nil
}

func (as *afters) add(op *active.Operation) *finishedSetup {
	call := op.Network()
	if call == nil {
		return nil
	}
	as.drop(op.ContainerID)
	evict(as.known, as.limit, func(s *finishedSetup) int64 { return s.until }, as.drop)
	s := &finishedSetup{
		of:    model.After{Flight: op.Flight(call, call.Runs[0], op.Runtime), End: call.End},
		until: call.End + int64(first), op: op,
		work: op.Behind(afterImages), running: map[event.Process]*model.Image{},
	}
	as.known[op.ContainerID] = s
	return s
}

func (as *afters) drop(container string) {
	if s := as.known[container]; s != nil {
		delete(as.known, container)
		as.abandon(s.work)
	}
}

func (as *afters) Begun(p *active.Process, key event.Process) {
	if s := as.works(p); s != nil {
		if im, is := s.running[key]; is && im == nil {
			s.running[key] = p.Current()
		}
	}
}

func (as *afters) Exited(now int64, p *active.Process, key event.Process) {
	s := as.works(p)
	if s == nil {
		return
	}
	if im := s.running[key]; im != nil {
		delete(s.running, key)
		s.ended = append(s.ended, im)
		as.tell(s, now)
	}
}

func (as *afters) works(p *active.Process) *finishedSetup {
	if s := as.known[p.Op.ContainerID]; s != nil && s.work == p.Op {
		return s
	}
	return nil
}

// tell returns ended images once the operation closed, whose span is their parent.
func (as *afters) tell(s *finishedSetup, now int64) {
	if s.op != nil {
		return
	}
	for _, im := range s.ended {
		active.Settle(im, now)
		one := s.of
		one.Image = im
		as.over = append(as.over, one)
	}
	s.ended = nil
}

// leave closes op. A teardown ends work for its setup.
func (as *afters) leave(now int64, op *active.Operation) {
	s := as.known[op.ContainerID]
	switch {
	case op.Kind == model.Teardown && op.Vouched():
		as.drop(op.ContainerID)
		return
	case op.Kind != model.Setup || !op.Vouched() || op.Live():
		return
	case s == nil || s.op != op:
		s = as.add(op)
	}
	if s == nil {
		return
	}
	if call := op.Network(); call != nil { // its parent may be known by now
		s.of.Flight = op.Flight(call, call.Runs[0], op.Runtime)
	}
	s.op = nil
	as.tell(s, now)
}

// expire reports what still runs after the deadlines, or at the end of the stream, and forgets the setup.
func (as *afters) expire(now int64, all bool) {
	for id, s := range as.known {
		if all || now > s.until && s.op == nil {
			as.cut(s, now)
			as.drop(id)
		}
	}
}

func (as *afters) cut(s *finishedSetup, now int64) {
	for _, im := range s.running {
		if im != nil {
			s.ended = append(s.ended, im)
		}
	}
	clear(s.running)
	slices.SortFunc(s.ended, earlier)
	as.tell(s, now)
}

func (as *afters) forget(key model.Key) {
	if s := as.known[key.ContainerID]; s != nil && s.of.Operation == key {
		as.drop(key.ContainerID)
	}
	as.over = slices.DeleteFunc(as.over, func(a model.After) bool { return a.Operation == key })
}

func (as *afters) Dropped() uint64 { return as.dropped }
