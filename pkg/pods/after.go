package pods

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/agents"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const (
	// afterMax is how many programs are kept that an agent runs for one pod behind its ADD, and afterImages how many
	// with all that these run in turn.
	afterMax    = 16
	afterImages = 64
)

// afters are what agents do for pods behind their ADDs.
type afters struct {
	limit   int
	dropped uint64                    // programs beyond what is kept for one pod
	known   map[string]*finishedSetup // by container
	// abandon ends following the processes of an operation.
	abandon func(*active.Operation)
	over    []model.After
}

// finishedSetup is an ADD whose agent may still work for the pod.
type finishedSetup struct {
	of    model.After // without an image
	until int64
	// op is the operation until that is over, and work what stands for it: it is held for a minute, and of the
	// operation nothing else is.
	op, work *active.Operation
	count    int
	running  map[event.Process]*model.Image
	ended    []*model.Image
}

// After finds the pod for which an agent runs a program though its ADD has returned, and returns the process that is to
// run it; nil if it names none, or there is no room for it. The name is all there is: that it ran then proves nothing.
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
	return s.work.Below(call, run, agents.Certain(by))
}

// of is the setup of a container: one that is over, or one that is open and whose plugins have ended.
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

// add remembers a setup; nil for one that gave no network.
func (as *afters) add(op *active.Operation) *finishedSetup {
	call := op.Network()
	if call == nil {
		return nil
	}
	as.drop(op.ContainerID)
	evict(as.known, as.limit, func(s *finishedSetup) int64 { return s.until }, as.drop)
	s := &finishedSetup{
		of: model.After{Flight: op.Flight(call, call.Runs[0], op.Runtime), End: call.End}, until: call.End + int64(first), op: op,
		work:    op.Behind(afterImages),
		running: map[event.Process]*model.Image{},
	}
	as.known[op.ContainerID] = s
	return s
}

// drop forgets a setup, and who works for it.
func (as *afters) drop(container string) {
	if s := as.known[container]; s != nil {
		delete(as.known, container)
		as.abandon(s.work)
	}
}

// Begun records what a process runs that works for a setup.
func (as *afters) Begun(p *active.Process, key event.Process) {
	if s := as.works(p); s != nil {
		if im, is := s.running[key]; is && im == nil {
			s.running[key] = p.Current()
		}
	}
}

// Exited records that it ended at now.
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

// tell reports the ended images once the operation is over, because their spans need its span as parent. Programs
// below an image that still run end at now.
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

// leave keeps what may be done for op, which is over at now; a teardown ends that.
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
	if call := op.Network(); call != nil { // what is above it may have been told by now
		s.of.Flight = op.Flight(call, call.Runs[0], op.Runtime)
	}
	s.op = nil
	as.tell(s, now)
}

// expire ends waiting for what is done later, and cuts what still runs.
func (as *afters) expire(now int64) {
	for id, s := range as.known {
		if now > s.until && s.op == nil {
			as.cut(s, now)
			as.drop(id)
		}
	}
}

// cut tells of what still runs as far as it has come.
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

// forget drops what is done behind an operation that is over.
func (as *afters) forget(key model.Key) {
	if s := as.known[key.ContainerID]; s != nil && s.of.Operation == key {
		as.drop(key.ContainerID)
	}
	as.over = slices.DeleteFunc(as.over, func(a model.After) bool { return a.Operation == key })
}

// Dropped is how many programs came after an ADD beyond what is kept for one pod.
func (as *afters) Dropped() uint64 { return as.dropped }

// Flush cuts all that there is, at the end of the stream.
func (as *afters) Flush(now int64) {
	for id, s := range as.known {
		as.cut(s, now)
		as.drop(id)
	}
}
