// Package pipeline turns live or recorded events into traces: timeline, judge, trace. It is pure.
package pipeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Pipeline makes judged operations and traces. Not for concurrent use.
type Pipeline struct {
	// Judge may be replaced between two events.
	Judge              judge.Options
	Whole              bool
	Usual              *baseline.Book
	ordinary, problems judge.Limiter
	timeline           *timeline.Timeline
	held               []held
	limit              int // of held
	now                int64
	builder            *trace.Builder
}

type held struct {
	*model.Operation
	call  *model.Call
	want  *event.Want
	until int64
}

// New returns an empty pipeline.
func New(t timeline.Options, j judge.Options, b *trace.Builder) *Pipeline {
	return &Pipeline{Judge: j, Usual: &baseline.Book{}, timeline: timeline.New(t), limit: t.Operations, builder: b}
}

// Apply returns results that an event finished.
func (p *Pipeline) Apply(e event.Event) (results []Result) {
	p.Each(e, func(r Result) { results = append(results, r) })
	return results
}

// Each is Apply, one result at a time.
func (p *Pipeline) Each(e event.Event, take func(Result)) {
	p.now = max(p.now, e.Time)
	p.results(p.timeline.Apply(e), take)
	switch b := e.Body.(type) {
	case *event.Look:
		p.release(take, func(h held) bool { return h.found(b) })
	case *event.Origin:
		p.builder.From(*b)
	case *event.Tick:
		p.release(take, func(h held) bool { return h.until < p.now })
		for _, f := range p.timeline.Overdue() {
			take(&Hung{f, p.now, p.builder.Hung(f, p.now)})
		}
	case *event.Readiness:
		for _, o := range p.timeline.Pods().Outages() {
			take(&Outage{o, p.builder.Outage(o)})
		}
	}
	p.later(take)
}

func (p *Pipeline) later(take func(Result)) {
	for _, c := range p.timeline.Pods().Asked() {
		take(&Awaited{c})
	}
	for _, c := range p.timeline.Pods().Connected() {
		v := judge.Connected(c)
		if c.Never && v == nil {
			continue
		}
		take(&Connected{c, v, p.builder.Connected(c, v)})
	}
	for _, s := range p.timeline.Pods().Started() {
		r := &Started{Start: s, Started: p.Judge.Start(s)}
		if !s.Dropped {
			r.Trace = p.builder.Start(s, r.Started)
		}
		take(r)
	}
	for _, up := range p.timeline.Pods().BringUps() {
		j := judge.BringUp(up)
		take(&BringUp{j, p.builder.BringUp(up, j)})
	}
	for _, a := range p.timeline.Pods().Afters() {
		j := p.Judge.After(a)
		take(&After{a, j.Says, p.builder.After(a, j)})
	}
}

// Now is the latest event's monotonic ns.
func (p *Pipeline) Now() int64 { return p.now }

// InFlight returns the calls in progress.
func (p *Pipeline) InFlight() []model.Flight { return p.timeline.InFlight() }

// Sandboxes returns those not yet removed.
func (p *Pipeline) Sandboxes() []*event.Sandbox { return p.timeline.Pods().Present() }

// Flush finishes all operations.
func (p *Pipeline) Flush() (results []Result) {
	p.FlushEach(func(r Result) { results = append(results, r) })
	return results
}

// FlushEach is Flush, one result at a time.
func (p *Pipeline) FlushEach(take func(Result)) {
	p.release(take, func(held) bool { return true })
	for _, op := range p.timeline.Flush() {
		p.judge(op, take)
	}
	p.later(take)
}

// Open counts unfinished operations and starts.
func (p *Pipeline) Open() int {
	return p.timeline.Open() + len(p.held) + p.timeline.Pods().Unfinished()
}

// Busy reports whether any are unfinished, cheaply.
func (p *Pipeline) Busy() bool { return p.timeline.Open()+len(p.held) > 0 || p.Open() > 0 }

// Stats counts events without a place.
func (p *Pipeline) Stats() timeline.Stats { return p.timeline.Stats() }

func (p *Pipeline) results(ops []*model.Operation, take func(Result)) {
	for i, op := range ops {
		ops[i] = nil // ownership passes to take
		if call, want := judge.Wants(op); want != nil && len(p.held) < p.limit {
			p.held = append(p.held, held{op, call, want, p.now + int64(event.LookPatience)})
			take(&Wanted{op.ContainerID, *want})
			continue
		}
		p.judge(op, take)
	}
}

func (h held) found(l *event.Look) bool {
	if l.Found == nil || l.ContainerID != h.ContainerID || l.Found.Kind != h.want.Kind {
		return false
	}
	h.call.Found = l.Found
	return true
}

func (p *Pipeline) release(take func(Result), over func(held) bool) {
	p.held = slices.DeleteFunc(p.held, func(h held) bool {
		if !over(h) {
			return false
		}
		p.judge(h.Operation, take)
		return true
	})
}

func (p *Pipeline) judge(op *model.Operation, take func(Result)) {
	r := &Judged{Operation: op, Judgement: p.Judge.JudgeBy(p.Usual, op)}
	if r.Judgement.Keep {
		r.Judgement.Reduced = !p.mayBeWhole(op, r.Judgement)
		r.Trace = p.builder.Build(op, r.Judgement)
	}
	if p.Whole && r.Judgement.Problem() != "" {
		r.Whole = p.whole(r)
	}
	if !r.Judgement.Keep || r.Judgement.Reduced {
		p.timeline.Pods().Forget(op.Key())
	}
	take(r)
}

// problemShare is problems per ordinary operation: by default for 50 pods at once.
const problemShare = 20

// mayBeWhole gives problems their own budget: ordinary operations end first in a burst.
func (p *Pipeline) mayBeWhole(op *model.Operation, j *judge.Judgement) bool {
	start, starts := p.timeline.Pods().Starting(op.Key())
	if j.Problem() != "" || starts && p.Judge.Start(start).Verdict != nil {
		return p.problems.Whole(p.now, p.Judge.PerSecond*problemShare)
	}
	return p.ordinary.Whole(p.now, p.Judge.PerSecond)
}

// whole ignores the judgement's omissions.
func (p *Pipeline) whole(r *Judged) trace.Trace {
	if r.Judgement.Keep && !r.Judgement.Reduced {
		return r.Trace
	}
	all := *r.Judgement
	all.Reduced = false
	return p.builder.Build(r.Operation, &all)
}
