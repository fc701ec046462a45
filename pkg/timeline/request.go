package timeline

import (
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

// Errno is what the kernel refused the request with; empty if it did not.
func (r *Request) Errno() string {
	if r.Answer != nil {
		return r.Answer.Error
	}
	return r.Error
}

// Failed tells a request that should have been granted from one that only tried whether something is there.
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

// answeredBy tells whether a is the answer, or that to one of several messages of a kind.
func (r *Request) answeredBy(a *event.Answer) bool {
	return a.Port == r.Port && a.Sequence-r.Sequence < uint32(max(1, r.Count))
}
