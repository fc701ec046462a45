package relay

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/source"
)

const (
	feature   = "relay"
	queueFull = "queue full"
)

// Counts are since New.
type Counts struct {
	// Received counts requests, Spans their spans, Told the spans of sandboxes, Unheard those that a full event queue
	// lost.
	Received, Spans, Told, Unheard uint64
	// Malformed, TooLarge and Unread (incomplete, too slow, or too many at once) count failed requests.
	Malformed, TooLarge, Unread uint64
	Looped                      uint64
	Refused                     map[Refusal]uint64
	queue.Stats
}

// Readings returns the metrics.
func (c Counts) Readings() []meter.Reading {
	dropped := map[queue.Reason]uint64{"no upstream": c.Unwanted}
	maps.Copy(dropped, c.Dropped)
	const requests, of = "relay_requests_total", "Requests of containerd to the relay: sent, answered with an error, " +
		"or looped (from another relay)."
	return slices.Concat([]meter.Reading{
		meter.Count(requests, of, c.Sent, "outcome", "sent"),
		meter.Count(requests, of, c.Malformed, "outcome", "malformed"),
		meter.Count(requests, of, c.TooLarge, "outcome", "too_large"),
		meter.Count(requests, of, c.Unread, "outcome", "unread"),
		meter.Count(requests, of, c.Looped, "outcome", "looped"),
		meter.Level("relay_queue_bytes", "Bytes that wait for the upstream.", c.WaitingBytes),
		meter.Count("relay_retries_total", "Requests to the upstream that were sent again.", c.Retries),
		meter.Count("relay_spans_told_total", "Spans of containerd that belong to a sandbox.", c.Told),
	},
		meter.ByReason("relay_connections_refused_total",
			"Connections closed unread: stranger (not the runtime), no_runtime (runtime not known), unseen (process gone or "+
				"not visible), busy (the runtime already has 64).", c.Refused, refusals[:]),
		meter.ByReason("relay_requests_dropped_total", "Requests that the upstream never gets.", dropped,
			[]queue.Reason{queue.Full, queue.Rejected, queue.SwitchedOff, queue.Closed}))
}

// Name is "relay".
func (*Relay) Name() string { return "relay" }

// Stats returns the counters.
func (r *Relay) Stats() source.Stats {
	return source.Stats{Features: []string{feature}, Losses: []string{queueFull}, Readings: r.Counts().Readings()}
}

// Counts returns a snapshot, safe for concurrent use.
func (r *Relay) Counts() Counts {
	r.mu.Lock()
	c := r.counts
	c.Refused = maps.Clone(c.Refused)
	r.mu.Unlock()
	c.Stats = r.queue.Stats()
	return c
}

func (r *Relay) count(what *uint64, more uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*what += more
}

func (r *Relay) refused(why Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Refused[why]++
}
