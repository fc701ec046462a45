// Package pipeline is the way from events to traces: timeline, judge, trace. It is the
// same for a live node and for a recording, and it is pure.
package pipeline

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/pkg/usual"
)

// Pipeline turns events into judged operations and traces. It is not safe for
// concurrent use.
type Pipeline struct {
	// Judge may be replaced between two events.
	Judge judge.Options
	// Whole has the spans of each slow or failed operation built, whatever the sampler decides.
	Whole bool
	// Usual is what is known of earlier operations; it learns from each.
	Usual    *usual.Book
	limiter  judge.Limiter
	timeline *timeline.Timeline
	now      int64
	builder  *trace.Builder
}

// Result is an operation that is over, or, and then Operation and Judgement are nil, a
// mark: a single span about one that is not over yet, or that was over before.
type Result struct {
	// Hung is a call that is under way for too long.
	Hung *timeline.Flight
	// Connected is a pod's first connection after its setup, if that was kept.
	Connected *timeline.Connected
	// After is what an agent did for a pod behind its ADD, if that was kept.
	After *timeline.After
	// Says is why the pod waited for that; empty if it took no time.
	Says string
	// Outage is a time in which the node's network was not ready.
	Outage    *timeline.Outage
	Operation *timeline.Operation
	Judgement *judge.Judgement
	// Trace is the zero value unless the operation is kept: no attribute is built
	// before that is decided.
	Trace trace.Trace
	// Whole is all spans of an operation that was slow or failed, if Pipeline.Whole is set.
	Whole trace.Trace
}

// Over reports whether it is an operation that is over.
func (r Result) Over() bool { return r.Operation != nil }

// Of is the operation that a mark about one that was over before belongs to.
func (r Result) Of() (of timeline.Key) {
	switch {
	case r.Connected != nil:
		return r.Connected.Operation
	case r.After != nil:
		return r.After.Operation
	}
	return of
}

// New returns an empty pipeline.
func New(t timeline.Options, j judge.Options, b *trace.Builder) *Pipeline {
	return &Pipeline{Judge: j, Usual: &usual.Book{}, timeline: timeline.New(t), builder: b}
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
			take(Result{Hung: &f, Trace: p.builder.Hung(f, p.now)})
		}
	case *event.Readiness:
		for _, o := range p.timeline.Outages() {
			take(Result{Outage: &o, Trace: p.builder.Outage(o)})
		}
	case *event.FirstConnection:
		for _, c := range p.timeline.Connected() {
			take(Result{Connected: &c, Trace: p.builder.Connected(c)})
		}
	}
	p.afters(take)
}

// afters passes on what agents did behind ADDs, once the operations are.
func (p *Pipeline) afters(take func(Result)) {
	for _, a := range p.timeline.Afters() {
		j := p.Judge.After(a)
		take(Result{After: &a, Says: j.Says, Trace: p.builder.After(a, j)})
	}
}

// Now is the time of the latest event, in monotonic ns.
func (p *Pipeline) Now() int64 { return p.now }

// InFlight returns the calls that are under way.
func (p *Pipeline) InFlight() []timeline.Flight { return p.timeline.InFlight() }

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

func (p *Pipeline) results(ops []*timeline.Operation, take func(Result)) {
	for i, op := range ops {
		ops[i] = nil // it is the taker's
		r := Result{Operation: op, Judgement: p.Judge.JudgeBy(p.Usual, op)}
		if r.Judgement.Keep {
			r.Judgement.Reduced = !p.limiter.Whole(p.now, p.Judge.PerSecond)
			r.Trace = p.builder.Build(op, r.Judgement)
		}
		if p.Whole && r.Judgement.Problem() != "" {
			r.Whole = p.whole(r)
		}
		if !r.Judgement.Keep || r.Judgement.Reduced {
			p.timeline.Forget(op)
		}
		take(r)
	}
}

// whole returns all spans of an operation, though its judgement may have been to leave some out.
func (p *Pipeline) whole(r Result) trace.Trace {
	if r.Judgement.Keep && !r.Judgement.Reduced {
		return r.Trace
	}
	all := *r.Judgement
	all.Reduced = false
	return p.builder.Build(r.Operation, &all)
}
