package timeline

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// answersMax is how many answers wait for their request.
const answersMax = 16

func (p *process) request(now int64, r *event.Request) {
	im, kept := p.current(), &model.Request{Request: r}
	when := within(im, r.Start, now)
	d, call := when.Took(), systemCall{r.Thread, when.Start}
	if p.latest == call {
		d = 0
	}
	p.latest = call
	fact := &model.Fact{Thread: r.Thread, When: when, What: kept}
	im.Tallies[fact.Kind()].Add(max(1, r.Count), d)
	p.op.names.learn(kept)
	p.op.names.resolve(kept)
	if i := slices.IndexFunc(p.answers, kept.AnsweredBy); i >= 0 {
		kept.Answer = p.answers[i]
		p.answers = slices.Delete(p.answers, i, i+1)
	}
	if r.Query() && !p.worth(when) {
		return
	}
	if p.room("requests") {
		p.keep(fact)
	}
}

// questions counts what was asked and not told one by one.
func (p *process) questions(q *event.Questions) {
	p.current().Tallies[model.FactQuery].Add(int(q.Count), q.Took)
}

func (p *process) answer(a *event.Answer) {
	var found *model.Request
	for _, f := range slices.Backward(p.current().Facts) {
		r, is := f.What.(*model.Request)
		if is && r.Answer == nil && r.AnsweredBy(a) && (found == nil || r.Sequence == a.Sequence && found.Sequence != a.Sequence) {
			found = r
		}
		if found != nil && found.Sequence == a.Sequence {
			break
		}
	}
	if found != nil {
		found.Answer = a
		return
	}
	// The answer may be read before the request is told. That of a query that is not kept
	// stays here until others push it out.
	if len(p.answers) >= answersMax {
		p.answers = slices.Delete(p.answers, 0, 1)
	}
	p.answers = append(p.answers, a)
}

// refusedBy tells whether the answer is to one of the image's requests.
func refusedBy(im *model.Image, a *event.Answer) bool {
	for _, r := range model.Each[*model.Request](im.Facts) {
		if r.AnsweredBy(a) {
			return true
		}
	}
	return false
}

// tentative reports whether nothing has come of it yet.
func tentative(d *model.Detection) bool { return d.State == event.AddressTentative }

func (p *process) address(now int64, a *event.Address) {
	im := p.current()
	for f, d := range model.Each[*model.Detection](im.Facts) {
		if tentative(d) && d.NetNS.Key == a.NetNS.Key && d.Index == a.Index && bare(d.Address) == bare(a.Address) {
			d.State, f.When.End = a.State, max(f.When.Start, now)
			return
		}
	}
	if a.State == event.AddressTentative && p.room("addresses") { // else it did not have to wait
		p.keep(&model.Fact{
			When: within(im, asked(im, a, now), now),
			What: &model.Detection{NetNS: a.NetNS, Index: a.Index, Address: a.Address, State: a.State},
		})
	}
}

// asked is when the image gave an interface this address; now if it did not.
func asked(im *model.Image, a *event.Address, now int64) int64 {
	for _, f := range slices.Backward(im.Facts) {
		r, is := f.What.(*model.Request)
		if is && r.Object == event.ObjectAddress && (r.Verb == event.VerbAdd || r.Verb == event.VerbChange) && bare(r.Address) == bare(a.Address) && r.NetNS.Key == a.NetNS.Key &&
			(r.Interface.Index == a.Index || r.Interface.Index == 0) {
			return f.When.Start
		}
	}
	return now
}

// bare is an address without its prefix length.
func bare(address string) string {
	s, _, _ := strings.Cut(address, "/")
	return s
}

// resolve fills in what facts lacked when they were told: the names of interfaces, and the ends of detections that a
// process did not see the end of.
func (op *operation) resolve() {
	one := func(im *model.Image) {
		for _, f := range im.Facts {
			switch what := f.What.(type) {
			case *model.Request:
				op.names.resolve(what)
			case *model.Detection:
				what.On = op.names.name(what.NetNS, what.Index)
				if tentative(what) {
					f.When.End = max(f.When.End, im.End)
				}
			}
		}
	}
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			run.Walk(one)
		}
	}
	for _, w := range op.works {
		one(w.Own)
		one(w.Shared)
	}
}
