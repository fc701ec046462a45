// Package pipeline is the way from events to traces: timeline, judge, trace. It is the
// same for a live node and for a recording, and it is pure.
package pipeline

import (
	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Pipeline turns events into judged operations and traces. It is not safe for
// concurrent use.
type Pipeline struct {
	// Judge may be replaced between two events.
	Judge judge.Options
	// Whole has the spans of each slow or failed operation built, whatever the sampler decides.
	Whole bool
	// Usual is what is known of earlier operations; it learns from each.
	Usual              *baseline.Book
	ordinary, problems judge.Limiter
	timeline           *timeline.Timeline
	now                int64
	builder            *trace.Builder
}

// New returns an empty pipeline.
func New(t timeline.Options, j judge.Options, b *trace.Builder) *Pipeline {
	return &Pipeline{Judge: j, Usual: &baseline.Book{}, timeline: timeline.New(t), builder: b}
}

// Apply takes the next event and returns what it brought to an end.
func (p *Pipeline) Apply(e event.Event) (results []Result) {
	p.Each(e, func(r Result) { results = append(results, r) })
	return results
}

// Each is Apply for callers that cannot hold many traces at once: take is given each result before
// the next is built.
func (p *Pipeline) Each(e event.Event, take func(Result)) {
	p.now = max(p.now, e.Time)
	p.results(p.timeline.Apply(e), take)
	switch b := e.Body.(type) {
	case *event.Origin:
		p.builder.From(*b)
	case *event.Tick:
		for _, f := range p.timeline.Overdue() {
			take(&Hung{f, p.builder.Hung(f, p.now)})
		}
	case *event.Readiness:
		for _, o := range p.timeline.Pods().Outages() {
			take(&Outage{o, p.builder.Outage(o)})
		}
	case *event.FirstConnection:
		for _, c := range p.timeline.Pods().Connected() {
			take(&Connected{c, p.builder.Connected(c)})
		}
	}
	p.afters(take)
}

// afters passes on what agents did behind ADDs, once the operations are.
func (p *Pipeline) afters(take func(Result)) {
	for _, a := range p.timeline.Pods().Afters() {
		j := p.Judge.After(a)
		take(&After{a, j.Says, p.builder.After(a, j)})
	}
}

// Now is the time of the latest event, in monotonic ns.
func (p *Pipeline) Now() int64 { return p.now }

// InFlight returns the calls that are under way.
func (p *Pipeline) InFlight() []model.Flight { return p.timeline.InFlight() }

// Flush ends whatever is open.
func (p *Pipeline) Flush() (results []Result) {
	p.FlushEach(func(r Result) { results = append(results, r) })
	return results
}

// FlushEach is to Flush what Each is to Apply.
func (p *Pipeline) FlushEach(take func(Result)) {
	p.results(p.timeline.Flush(), take)
	p.afters(take)
}

// Open returns the number of operations that are not over.
func (p *Pipeline) Open() int { return p.timeline.Open() }

// Stats returns what could not be placed so far.
func (p *Pipeline) Stats() timeline.Stats { return p.timeline.Stats() }

func (p *Pipeline) results(ops []*model.Operation, take func(Result)) {
	for i, op := range ops {
		ops[i] = nil // it is the taker's
		r := &Judged{Operation: op, Judgement: p.Judge.JudgeBy(p.Usual, op)}
		if r.Judgement.Keep {
			r.Judgement.Reduced = !p.mayBeWhole(r.Judgement)
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
}

// problemShare is how many slow, failed and hung operations are kept whole for each ordinary one of
// sampling.per_second: with its default of 5, all of 30 pods that start at once, and the backend is protected all the same.
const problemShare = 10

// mayBeWhole reports whether an operation that ends now is kept whole. Ordinary operations end first in a burst, so
// slow, failed and hung ones have a budget of their own.
func (p *Pipeline) mayBeWhole(j *judge.Judgement) bool {
	if j.Problem() != "" {
		return p.problems.Whole(p.now, p.Judge.PerSecond*problemShare)
	}
	return p.ordinary.Whole(p.now, p.Judge.PerSecond)
}

// whole returns all spans of an operation, though its judgement may have been to leave some out.
func (p *Pipeline) whole(r *Judged) trace.Trace {
	if r.Judgement.Keep && !r.Judgement.Reduced {
		return r.Trace
	}
	all := *r.Judgement
	all.Reduced = false
	return p.builder.Build(r.Operation, &all)
}
