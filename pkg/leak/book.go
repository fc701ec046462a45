package leak

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/meter"
)

// Max bounds a Book, which drops the oldest; nodes have far fewer pods (110 by default).
const Max = 4096

// Book holds attachments without a DEL, and the last Look's result. Not for concurrent use.
type Book struct {
	held   []Attachment // in order of ADD
	leaked []Attachment
	stuck  []Attachment
	leases int
	looked bool
}

// Added records a finished ADD.
func (b *Book) Added(a Attachment) {
	b.Deleted(a, "")
	if len(b.held) >= Max {
		b.held = slices.Delete(b.held, 0, 1)
	}
	b.held = append(b.held, a)
}

// Deleted records a DEL and its error, if any.
func (b *Book) Deleted(a Attachment, failed string) {
	if failed == "" {
		b.held = slices.DeleteFunc(b.held, func(k Attachment) bool { return same(k, a) })
		return
	}
	for i, k := range b.held {
		if same(k, a) {
			b.held[i].Tried, b.held[i].Says = k.Tried+1, failed
		}
	}
}

// Doubt drops all: a DEL may have been missed.
func (b *Book) Doubt() { b.held = nil }

// Look compares attachments with the node, and returns new leaks and former ones.
func (b *Book) Look(l Look, after time.Duration) (found, freed []Attachment) {
	now := l.Attachments(b.held, after)
	found, freed = without(now, b.leaked), without(b.leaked, now)
	// An unobserved DEL removed these results.
	b.held = slices.DeleteFunc(b.held, func(a Attachment) bool {
		return !among(now, a) && l.gone(a.ContainerID, a.Since, after)
	})
	b.looked = true
	b.leaked, b.leases = now[:min(len(now), Max)], len(l.Leaked(after))
	return found, freed
}

// Stuck returns those of sandboxes that newly cannot be stopped.
func (b *Book) Stuck(now []Attachment) (found []Attachment) {
	found = without(now, b.stuck)
	b.stuck = now
	return found
}

func without(all, known []Attachment) (rest []Attachment) {
	for _, a := range all {
		if !among(known, a) {
			rest = append(rest, a)
		}
	}
	return rest
}

// Held returns the remembered attachments.
func (b *Book) Held() []Attachment { return slices.Clone(b.held) }

// Readings returns figures after the first Look.
func (b *Book) Readings() []meter.Reading {
	if !b.looked {
		return nil
	}
	return []meter.Reading{
		meter.Level("leaked_networks",
			"Networks of sandboxes that are gone, without a DEL; absent if the runtime does not answer.", len(b.leaked)),
		meter.Level("leaked_leases", "Host-local addresses leased to sandboxes that are gone.", b.leases),
	}
}
