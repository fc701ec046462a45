package active

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// answersMax bounds a process's answers without a request.
const answersMax = 16

func (p *Process) request(now int64, r *event.Request) {
	im, kept := p.Current(), &model.Request{Request: r}
	when := Within(im, r.Start, now)
	d, call := when.Took(), systemCall{r.Thread, when.Start}
	if p.latest == call {
		d = 0
	}
	p.latest = call
	fact := &model.Fact{Thread: r.Thread, When: when, What: kept}
	im.Tallies[fact.Kind()].Add(max(1, r.Count), d)
	p.Op.names.learn(kept)
	p.Op.names.resolve(kept)
	if i := slices.IndexFunc(p.answers, kept.AnsweredBy); i >= 0 {
		kept.Answer = p.answers[i]
		p.answers = slices.Delete(p.answers, i, i+1)
	}
	if r.Query() && !p.worth(when) {
		return
	}
	if p.Room("requests") {
		p.Keep(fact)
	}
}

func (p *Process) answer(a *event.Answer) {
	var found *model.Request
	for _, f := range slices.Backward(p.Current().Facts) {
		r, is := f.What.(*model.Request)
		if is && r.Answer == nil && r.AnsweredBy(a) &&
			(found == nil || r.Sequence == a.Sequence && found.Sequence != a.Sequence) {
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
	// It may be read before its request. Those of unstored queries stay until displaced.
	p.answers = model.Latest(p.answers, answersMax, a)
}

// refusedBy reports whether an answer is to one of the image's requests.
func refusedBy(im *model.Image, a *event.Answer) bool {
	for _, r := range model.Each[*model.Request](im.Facts) {
		if r.AnsweredBy(a) {
			return true
		}
	}
	return false
}

func tentative(d *model.Detection) bool { return d.State == event.AddressTentative }

func (p *Process) address(now int64, a *event.Address) {
	im := p.Current()
	for f, d := range model.Each[*model.Detection](im.Facts) {
		if tentative(d) && d.NetNS.Key == a.NetNS.Key && d.Index == a.Index && bare(d.Address) == bare(a.Address) {
			d.State, f.When.End = a.State, max(f.When.Start, now)
			return
		}
	}
	if a.State == event.AddressTentative && p.Room("addresses") { // otherwise it did not wait
		p.Keep(&model.Fact{
			When: Within(im, asked(im, a, now), now),
			What: &model.Detection{NetNS: a.NetNS, Index: a.Index, Address: a.Address, State: a.State},
		})
	}
}

// asked returns when the image requested the address, or now.
func asked(im *model.Image, a *event.Address, now int64) int64 {
	for _, f := range slices.Backward(im.Facts) {
		r, is := f.What.(*model.Request)
		if is && r.Object == event.ObjectAddress && (r.Verb == event.VerbAdd || r.Verb == event.VerbChange) &&
			bare(r.Address) == bare(a.Address) && r.NetNS.Key == a.NetNS.Key &&
			(r.Interface.Index == a.Index || r.Interface.Index == 0) {
			return f.When.Start
		}
	}
	return now
}

func bare(address string) string {
	s, _, _ := strings.Cut(address, "/")
	return s
}
