package leak

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/meter"
)

// Max bounds the attachments that a Book remembers: far more than a node has pods (kubelet's default is 110).
// Where there are more, the oldest is forgotten.
const Max = 4096

// Book remembers the networks that were seen to be given to sandboxes, until they are taken back, and which of
// them a Look has shown to be leaked. It is not safe for concurrent use.
type Book struct {
	held   []Attachment // in the order of their ADD
	leaked []Attachment
	leases int
	looked bool
}

// Added records an ADD that is over.
func (b *Book) Added(a Attachment) {
	b.held = slices.DeleteFunc(b.held, func(k Attachment) bool { return same(k, a) })
	if len(b.held) >= Max {
		b.held = slices.Delete(b.held, 0, 1)
	}
	b.held = append(b.held, a)
}

// Deleted records a DEL that is over: of the sandbox, interface and network of a. failed is why it did not
// succeed, empty if it did.
func (b *Book) Deleted(a Attachment, failed string) {
	if failed == "" {
		b.held = slices.DeleteFunc(b.held, func(k Attachment) bool { return same(k, a) })
		return
	}
	for i := range b.held {
		if k := &b.held[i]; same(*k, a) {
			k.Tried++
			k.Says = failed
		}
	}
}

// Doubt forgets what was seen: a DEL may have been missed.
func (b *Book) Doubt() { b.held = nil }

// Look compares what was seen with what the node has, and returns what has been found to be leaked since the
// last Look, and what was leaked then and is not any more.
func (b *Book) Look(l Look, after time.Duration) (found, freed []Attachment) {
	now := l.Attachments(b.held, after)
	for _, a := range now {
		if !slices.ContainsFunc(b.leaked, func(k Attachment) bool { return same(k, a) }) {
			found = append(found, a)
		}
	}
	for _, k := range b.leaked {
		if !slices.ContainsFunc(now, func(a Attachment) bool { return same(k, a) }) {
			freed = append(freed, k)
		}
	}
	// What libcni has forgotten of a sandbox that is gone was taken back while nobody looked.
	b.held = slices.DeleteFunc(b.held, func(a Attachment) bool {
		return l.gone(a.ContainerID, a.Since, after) && !slices.ContainsFunc(now, func(k Attachment) bool { return same(k, a) })
	})
	b.looked = true
	b.leaked, b.leases = now[:min(len(now), Max)], len(l.Leaked(after))
	return found, freed
}

// Leaked returns what the last Look found.
func (b *Book) Leaked() []Attachment { return slices.Clone(b.leaked) }

// Held returns the attachments that are remembered: of sandboxes that are there, and of others.
func (b *Book) Held() []Attachment { return slices.Clone(b.held) }

// Readings are what the last Look found; none before the first.
func (b *Book) Readings() []meter.Reading {
	if !b.looked {
		return nil
	}
	return []meter.Reading{
		meter.Level("leaked_networks", "Networks that an ADD gave to sandboxes which are gone, and no DEL took back.", len(b.leaked)),
		meter.Level("leaked_leases", "Addresses that host-local has leased to sandboxes which are gone.", b.leases),
	}
}
