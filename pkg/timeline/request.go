package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Request is what was asked of the kernel, with its answer.
type Request struct {
	*event.Request
	// When it was asked, until the kernel was done with it.
	When Interval
	// Answer is the kernel's refusal; nil if it granted the request, or if it was not seen.
	Answer *event.Answer
	// On is the name of the interface it is about, Under that of the one it is put under;
	// empty where only an index is known.
	On, Under string
	// Attribution is how it came to belong to the call, if a server asked for it.
	Attribution *Attribution
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

func (t *Timeline) request(now int64, r *event.Request) {
	p := t.of(r.Process)
	if p == nil {
		return
	}
	im := p.current()
	in, kept := im.inside(), Request{Request: r, When: im.within(r.Start, now), Attribution: p.doing}
	tally := &in.Changes
	if r.Query() {
		tally = &in.Queries
	}
	d := kept.When.took()
	call := systemCall{r.Thread, kept.When.Start}
	if in.last == call {
		d = 0
	}
	in.last = call
	tally.add(max(1, r.Count), d)
	t.inNamespace(p, r.NetNS)
	p.op.names.learn(&kept)
	p.op.names.resolve(&kept)
	if i := slices.IndexFunc(p.answers, kept.answeredBy); i >= 0 {
		kept.Answer = p.answers[i]
		p.answers = slices.Delete(p.answers, i, i+1)
	}
	if r.Query() && kept.When.took() < int64(t.options.MinSpan) {
		return
	}
	if t.room(p, "requests") {
		in.Requests = append(in.Requests, kept)
	}
}

// answeredBy tells whether a is the answer, or that to one of several messages of a kind.
func (r *Request) answeredBy(a *event.Answer) bool {
	return a.Port == r.Port && a.Sequence-r.Sequence < uint32(max(1, r.Count))
}

func (t *Timeline) answer(a *event.Answer) {
	p := t.of(a.Process)
	if p == nil {
		return
	}
	im := p.current()
	if im.Inside != nil {
		var found *Request
		for i := range slices.Backward(im.Inside.Requests) {
			r := &im.Inside.Requests[i]
			if r.Answer == nil && r.answeredBy(a) && (found == nil || r.Sequence == a.Sequence && found.Sequence != a.Sequence) {
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
	}
	// The answer may be read before the request is told. That of a query that is not kept
	// stays here until others push it out.
	if len(p.answers) >= answersMax {
		p.answers = slices.Delete(p.answers, 0, 1)
	}
	p.answers = append(p.answers, a)
}
