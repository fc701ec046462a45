package timeline

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// answersMax is how many answers wait for their request.
const answersMax = 16

func (p *process) request(now int64, r *event.Request) {
	im, kept := p.current(), &Request{Request: r}
	when := im.within(r.Start, now)
	d, call := when.took(), systemCall{r.Thread, when.Start}
	if im.latest == call {
		d = 0
	}
	im.latest = call
	im.Tallies[kept.kind()].add(max(1, r.Count), d)
	p.op.names.learn(kept)
	p.op.names.resolve(kept)
	if i := slices.IndexFunc(p.answers, kept.answeredBy); i >= 0 {
		kept.Answer = p.answers[i]
		p.answers = slices.Delete(p.answers, i, i+1)
	}
	if r.Query() && !p.worth(when) {
		return
	}
	if p.room("requests") {
		p.keep(r.Thread, when, kept)
	}
}

// questions counts what was asked and not told one by one.
func (p *process) questions(q *event.Questions) {
	p.current().Tallies[FactQuery].add(int(q.Count), q.Took)
}

func (p *process) answer(a *event.Answer) {
	var found *Request
	for _, f := range slices.Backward(p.current().Facts) {
		r, is := f.What.(*Request)
		if is && r.Answer == nil && r.answeredBy(a) && (found == nil || r.Sequence == a.Sequence && found.Sequence != a.Sequence) {
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
func (im *Image) refusedBy(a *event.Answer) bool {
	for _, r := range Each[*Request](im.Facts) {
		if r.answeredBy(a) {
			return true
		}
	}
	return false
}

// Detection is duplicate address detection, as far as a process looked how it went on: from when the address
// was asked for, or first seen tentative, until the process was told what came of it.
type Detection struct {
	NetNS   event.Namespace
	Index   uint32
	Address string
	// On is the interface's name; empty if it is not known.
	On string
	// State is what came of it; AddressTentative if the process did not wait for that.
	State event.AddressState
}

func (*Detection) kind() FactKind { return FactDetection }

// open reports whether nothing has come of it yet.
func (d *Detection) open() bool { return d.State == event.AddressTentative }

func (p *process) address(now int64, a *event.Address) {
	im := p.current()
	for f, d := range Each[*Detection](im.Facts) {
		if d.open() && d.NetNS.Key == a.NetNS.Key && d.Index == a.Index && bare(d.Address) == bare(a.Address) {
			d.State, f.When.End = a.State, max(f.When.Start, now)
			return
		}
	}
	if a.State == event.AddressTentative && p.room("addresses") { // else it did not have to wait
		p.keep(0, im.within(im.asked(a, now), now), &Detection{NetNS: a.NetNS, Index: a.Index, Address: a.Address, State: a.State})
	}
}

// asked is when the image gave an interface this address; now if it did not.
func (im *Image) asked(a *event.Address, now int64) int64 {
	for _, f := range slices.Backward(im.Facts) {
		r, is := f.What.(*Request)
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

// unanswered gives an end to the detections that a process did not see the end of.
func (op *operation) unanswered() {
	op.eachImage(func(im *Image) {
		for _, f := range im.Facts {
			if d, is := f.What.(*Detection); is && d.open() {
				f.When.End = max(f.When.End, im.End)
			}
		}
	})
}

// nameInterfaces resolves what names were told for only later.
func (op *operation) nameInterfaces() {
	op.eachImage(func(im *Image) {
		for _, f := range im.Facts {
			switch what := f.What.(type) {
			case *Request:
				op.names.resolve(what)
			case *Detection:
				what.On = op.names.name(what.NetNS, what.Index)
			}
		}
	})
}
