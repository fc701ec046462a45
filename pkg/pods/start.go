package pods

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const (
	startsMax = 64
	startMost = 5 * time.Minute // kubelets wait less
	startRest = time.Second
	inodeTick = int64(10 * time.Millisecond)
)

// starts joins a sandbox's programs, network setup and NRI's report.
type starts struct {
	limit  int
	known  map[string]*start // by sandbox
	over   []model.Start
	doubt  int64
	failed int
}

type start struct {
	model.Start
	since  int64
	last   int64
	closed bool // the setup ended
	failed bool // a plugin of it did
	began  bool
	bad    bool
	hidden bool // its first plugin may be unseen
}

func (all *starts) Stepped(now int64, b *event.Step) {
	s := all.of(now, b.SandboxID)
	if len(s.Steps) < startsMax {
		s.Steps = append(s.Steps, model.Step{Step: *b, End: now})
	}
	if b.Kind == event.StepRuntime || b.Kind == event.StepShim {
		bad := b.Code != 0 || b.Signal != ""
		s.last, s.bad, s.began = now, s.bad || bad, s.began || b.Verb == "start" && !bad
	}
}

// Broken returns the steps of a failed start.
func (all *starts) Broken(id string) []model.Step {
	if s := all.known[id]; s != nil && s.bad && !s.began {
		return s.Steps
	}
	return nil
}

// Starting returns an operation's start so far.
func (p *Pods) Starting(op model.Key) (so model.Start, is bool) {
	if i := slices.IndexFunc(p.starts.over, func(s model.Start) bool { return s.Operation == op }); i >= 0 {
		return p.starts.over[i], true
	}
	s := p.starts.known[op.ContainerID]
	if s == nil || s.Operation != op {
		return so, false
	}
	far := *s
	return far.end(p.Sandbox(op.ContainerID), p.doubt), true
}

func (all *starts) of(now int64, id string) *start {
	s := all.known[id]
	if s == nil {
		evict(all.known, all.limit, func(s *start) int64 { return s.since }, func(id string) { delete(all.known, id) })
		s = &start{since: now}
		s.Request = model.RunPodSandbox
		all.known[id] = s
	}
	return s
}

func (all *starts) leave(now int64, op *active.Operation) {
	call := op.Network()
	if op.Kind != model.Setup || call == nil || !op.Vouched() {
		return
	}
	s := all.of(now, op.ContainerID)
	s.Flight, s.From, s.Network = op.Flight(call, call.Runs[0], op.Runtime), op.Start, op.End
	s.closed, s.hidden = true, op.Lost > 0
	for _, c := range op.Calls {
		s.From, s.hidden = min(s.From, c.Start), s.hidden || c.Runs[0].InFlight
		if !s.failed && slices.ContainsFunc(c.Runs, (*model.Image).Failed) {
			s.failed = true
			all.failed++
		}
	}
	for _, a := range op.Aboves {
		all.Above(a)
	}
}

// Above notes when a start was requested.
func (all *starts) Above(a *event.Above) {
	if s := all.known[a.SandboxID]; s != nil && a.Whole() && (s.Asked == 0 || a.Start < s.Asked) {
		s.Asked = a.Start
	}
}

// Doubt notes a step of the wall clock or a lost program.
func (all *starts) Doubt(now int64) { all.doubt = now }

func (all *starts) drop(op model.Key) {
	if s := all.known[op.ContainerID]; s != nil && s.Operation == op {
		s.Dropped = true
	}
}

// Finish ends failed, reported or resting starts.
func (p *Pods) Finish(now int64, awaits func(s *event.Sandbox, ns int64) bool) {
	all := &p.starts
	for id, s := range all.known {
		told := p.Sandbox(id)
		reported := told != nil && told.Ran
		switch {
		case now-s.since > int64(startMost):
		case !s.closed:
			continue
		case s.bad:
		case reported && len(all.known) < all.limit/2 && s.unasked() && awaits(told.first, now-told.Since):
			continue
		case s.began && reported, reported && len(s.Steps) == 0:
		default:
			if !s.began || now-s.last < int64(startRest) {
				continue
			}
		}
		delete(all.known, id)
		if s.closed {
			p.finished(s, told)
		}
	}
}

func (p *Pods) finished(s *start, told *Sandbox) {
	e := s.end(told, p.doubt)
	if s.bad && !s.began && !s.failed {
		p.failed++
	}
	p.started(&e)
	if len(s.Steps) > 0 || told != nil && told.Ran && told.first.Late > 0 {
		p.starts.over = append(p.starts.over, e)
	}
}

// Unfinished counts starts awaiting ticks.
func (p *Pods) Unfinished() (n int) {
	for id, s := range p.starts.known {
		if !s.closed {
			continue
		}
		if told := p.Sandbox(id); s.bad || s.began || told != nil && told.Ran && len(s.Steps) == 0 {
			n++
		}
	}
	return n
}

func (s *start) unasked() bool { return s.Asked == 0 && !s.hidden }

// Ends notes a late stop or removal.
func (all *starts) Ends(now int64, s *event.Sandbox, node Node) {
	named := slices.ContainsFunc(s.Plugins, func(p event.Actor) bool { return p.State != "" })
	if !named || s.Phase != event.SandboxStopped && s.Phase != event.SandboxRemoved {
		return
	}
	e := model.Start{
		Request: model.StopPodSandbox, From: now - s.Late, Network: now - s.Late, To: now, Reported: now,
		Sandbox: s, Dropped: true,
	}
	if s.Phase == event.SandboxRemoved {
		e.Request = model.RemovePodSandbox
	}
	e.Flight = model.Flight{ContainerID: s.ID, Pod: s.Pod, Mono: node.Mono, Wall: node.Wall, Runtime: node.Runtime}
	all.over = append(all.over, e)
}

func (s *start) end(told *Sandbox, doubt int64) model.Start {
	slices.SortStableFunc(s.Steps, func(a, b model.Step) int { return cmp.Compare(a.Started, b.Started) })
	s.To = max(s.Network, s.last)
	if told != nil && told.Ran {
		s.Reported, s.Sandbox = told.Since, told.first
		if at := told.first.Mounted; at != 0 {
			s.Mounted = at - s.Wall + s.Mono
		}
		s.To = max(s.To, told.Since)
	}
	before := func(at int64) bool { return !s.hidden && at > doubt && at <= s.From && at > s.From-int64(startMost) }
	if !before(s.Asked) {
		s.Asked = 0
	}
	if !before(s.Mounted) || s.Mounted < s.Asked-inodeTick {
		s.Mounted = 0
	} else {
		s.Mounted = max(s.Mounted, s.Asked)
	}
	return s.Start
}
