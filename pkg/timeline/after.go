package timeline

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
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
	dropped *uint64
	known   map[string]*done // by container
	// abandon ends following the processes of an operation.
	abandon func(*operation)
	over    []model.After
}

// done is a setup whose plugins have ended.
type done struct {
	of    model.After // without an image
	until int64
	// op is the operation until that is over, and work what stands for it: it is held for a minute, and of the
	// operation nothing else is.
	op, work *operation
	count    int
	running  map[event.Process]*model.Image
	ended    []*model.Image
}

// after finds the pod for which an agent runs a program though its ADD has returned, and returns the process that of
// is to be; nil if it names none, or there is no room for it. The name is all there is: that it ran then proves nothing.
func (t *Timeline) after(e *event.Exec, of *tree.Process, by *event.Actor) *process {
	if len(e.Mentions) != 1 {
		return nil
	}
	s := t.afters.of(t, e.Mentions[0])
	if s == nil || t.now > s.until {
		return nil
	}
	if s.count >= afterMax {
		*t.afters.dropped++
		return nil
	}
	s.count++
	s.running[e.Process] = nil
	t.tree.Assign(of)
	run := s.of.Run()
	return &process{
		op: s.work, call: &model.Call{Command: s.of.Command, IfName: s.of.IfName, Runs: []*model.Image{run}}, run: run, up: run,
		claim: &claim{by: by, Attribution: model.Attribution{Evidence: model.Certain}},
	}
}

// of is the setup of a container: one that is over, or one that is open and whose plugins have ended.
func (as *afters) of(t *Timeline, container string) *done {
	if s := as.known[container]; s != nil {
		return s
	}
	for _, op := range t.open {
		if op.ContainerID == container && op.Kind == model.Setup && op.live == 0 && op.vouched() {
			return as.add(op)
		}
	}
	return nil
}

// add remembers a setup; nil for one that gave no network.
func (as *afters) add(op *operation) *done {
	call := op.Network()
	if call == nil {
		return nil
	}
	as.drop(op.ContainerID)
	as.vacate()
	s := &done{
		of: model.After{Flight: op.Flight(call, call.Runs[0], op.Runtime), End: call.End}, until: call.End + int64(first), op: op,
		work:    newOperation(&model.Operation{Kind: model.Setup, ContainerID: op.ContainerID}, &Options{Images: afterImages}, op.names.node, op.began),
		running: map[event.Process]*model.Image{},
	}
	as.known[op.ContainerID] = s
	return s
}

// vacate forgets the setup that was over first if there are too many.
func (as *afters) vacate() {
	if len(as.known) < as.limit {
		return
	}
	oldest := ""
	for id, s := range as.known {
		if o := as.known[oldest]; o == nil || cmp.Or(cmp.Compare(s.until, o.until), cmp.Compare(id, oldest)) < 0 {
			oldest = id
		}
	}
	as.drop(oldest)
}

// drop forgets a setup, and who works for it.
func (as *afters) drop(container string) {
	if s := as.known[container]; s != nil {
		delete(as.known, container)
		as.abandon(s.work)
	}
}

// begun records what a process runs that works for a setup, and exited that it ended at now.
func (as *afters) begun(p *process, key event.Process) {
	if s := as.works(p); s != nil {
		if im, is := s.running[key]; is && im == nil {
			s.running[key] = p.image
		}
	}
}

// exited is described at begun.
func (as *afters) exited(now int64, p *process, key event.Process) {
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

func (as *afters) works(p *process) *done {
	if s := as.known[p.op.ContainerID]; s != nil && s.work == p.op {
		return s
	}
	return nil
}

// tell reports the ended images once the operation is over, because their spans need its span as parent. Programs
// below an image that still run end at now.
func (as *afters) tell(s *done, now int64) {
	if s.op != nil {
		return
	}
	for _, im := range s.ended {
		settle(im, now)
		one := s.of
		one.Image = im
		as.over = append(as.over, one)
	}
	s.ended = nil
}

// leave keeps what may be done for op, which is over at now; a teardown ends that.
func (as *afters) leave(now int64, op *operation) {
	s := as.known[op.ContainerID]
	switch {
	case op.Kind == model.Teardown && op.vouched():
		as.drop(op.ContainerID)
		return
	case op.Kind != model.Setup || !op.vouched() || op.live != 0:
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
func (as *afters) cut(s *done, now int64) {
	for _, im := range s.running {
		if im != nil {
			s.ended = append(s.ended, im)
		}
	}
	clear(s.running)
	slices.SortFunc(s.ended, func(a, b *model.Image) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Process, b.Process))
	})
	as.tell(s, now)
}

// forget says that nobody wants to know what is done behind an operation that is over.
func (as *afters) forget(key model.Key) {
	if s := as.known[key.ContainerID]; s != nil && s.of.Operation == key {
		as.drop(key.ContainerID)
	}
	as.over = slices.DeleteFunc(as.over, func(a model.After) bool { return a.Operation == key })
}

// flush cuts all that there is, at the end of the stream.
func (as *afters) flush(now int64) {
	for id, s := range as.known {
		as.cut(s, now)
		as.drop(id)
	}
}

// Afters returns what agents did for pods whose setup was over before, each once, in order.
func (t *Timeline) Afters() []model.After {
	all := t.afters.over
	t.afters.over = nil
	slices.SortStableFunc(all, func(a, b model.After) int {
		return cmp.Or(cmp.Compare(a.Image.Start, b.Image.Start), cmp.Compare(a.Image.Process, b.Image.Process))
	})
	return all
}
