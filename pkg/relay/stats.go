package relay

// Reason is why a request was not passed on.
type Reason string

// The reasons.
const (
	// Full: too many bytes were waiting.
	Full Reason = "queue full"
	// Refused: the upstream refused it for good.
	Refused Reason = "refused"
	// Nowhere: there is no upstream.
	Nowhere Reason = "no upstream"
	// Closed: it was still waiting, or came, when the relay was closed.
	Closed Reason = "closed"
)

// Stats counts what a relay saw since it was made.
type Stats struct {
	// Received is how many requests came, and Spans how many spans were in them.
	Received, Spans uint64
	// Told is how many of the spans were of a sandbox, and Unheard how many of those found
	// nobody who took them in time.
	Told, Unheard uint64
	// Malformed, TooLarge and Unread requests were answered with an error: they are not
	// OTLP, are longer than is read, or were cut off, too slow, or too many at a time.
	Malformed, TooLarge, Unread uint64
	// Looped requests had been through a relay before.
	Looped uint64
	// Refused is how many connections were closed before anything was read, by reason; there
	// is one for each.
	Refused map[Refusal]uint64
	Forwarding
}

// Forwarding counts what became of the requests that were to be passed on.
type Forwarding struct {
	// Waiting is how many wait now, and WaitingBytes what they hold.
	Waiting, WaitingBytes int
	// Forwarded is how many the upstream has taken.
	Forwarded uint64
	// Dropped is how many it will never see, by reason.
	Dropped map[Reason]uint64
	// Retries is how many failed and were, or will be, sent again.
	Retries uint64
	// LastError is the last thing that went wrong; safe to print.
	LastError string
}

// Lost is the sum of Dropped.
func (f Forwarding) Lost() (n uint64) {
	for _, d := range f.Dropped {
		n += d
	}
	return n
}

// Stats returns a snapshot. It is safe for concurrent use.
func (r *Relay) Stats() Stats {
	c := &r.counts
	refused := map[Refusal]uint64{}
	for i, why := range refusals {
		refused[why] = c.refused[i].Load()
	}
	return Stats{
		Received: c.received.Load(), Spans: c.spans.Load(), Told: c.told.Load(), Unheard: c.unheard.Load(),
		Malformed: c.malformed.Load(), TooLarge: c.tooLarge.Load(), Unread: c.unread.Load(),
		Looped: c.looped.Load(), Refused: refused,
		Forwarding: r.queue.snapshot(),
	}
}
