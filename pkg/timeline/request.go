package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Request is what was asked of the kernel, with its answer.
type Request struct {
	*event.Request
	// Answer is the kernel's refusal; nil if it granted the request, or if it was not seen.
	Answer *event.Answer
	// On is the name of the interface it is about, Under that of the one it is put under;
	// empty where only an index is known.
	On, Under string
}

func (r *Request) kind() FactKind {
	if r.Query() {
		return FactQuery
	}
	return FactChange
}

// answersMax is how many answers wait for their request.
const answersMax = 16

// Errno is what the kernel refused the request with; empty if it did not.
func (r *Request) Errno() string {
	if r.Answer != nil {
		return r.Answer.Error
	}
	return r.Error
}

// Failed tells a request that should have been granted from one that only tried whether
// something is there.
func (r *Request) Failed() bool {
	switch r.Errno() {
	case "":
		return false
	case "EEXIST":
		return !r.Exclusive
	case "ENOENT", "ESRCH", "ENODEV", "ENXIO", "EADDRNOTAVAIL":
		return r.Verb != event.VerbQuery && r.Verb != event.VerbDelete
	}
	return true
}

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

// answeredBy tells whether a is the answer, or that to one of several messages of a kind.
func (r *Request) answeredBy(a *event.Answer) bool {
	return a.Port == r.Port && a.Sequence-r.Sequence < uint32(max(1, r.Count))
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
