package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cniscope/cniscope/pkg/relay"
)

// relayed are the counts of the relay for containerd's own spans.
type relayed struct {
	requests, waiting, dropped, retries, told, orphaned, refused *prometheus.Desc
}

func newRelayed(desc func(name, help string, labels ...string) *prometheus.Desc) relayed {
	return relayed{
		requests: desc("relay_requests_total", "Requests that containerd sent, by what became of them: sent, malformed, too_large, unread or looped. Those that wait or were dropped are counted apart.", "outcome"),
		waiting:  desc("relay_queue_bytes", "What waits for the upstream."),
		dropped:  desc("relay_requests_dropped_total", "Requests that the upstream will never see.", "reason"),
		retries:  desc("relay_retries_total", "Requests that failed and were, or will be, sent again."),
		told:     desc("relay_spans_told_total", "Containerd's spans that were of a sandbox."),
		orphaned: desc("operations_orphaned_total", "Operations that waited in vain for containerd's span."),
		refused:  desc("relay_connections_refused_total", "Connections that were closed before anything was read: of strangers, while no_runtime was known, unseen (gone, or not to be looked at), or because the runtime has too many (busy).", "reason"),
	}
}

func (r relayed) all() []*prometheus.Desc {
	return []*prometheus.Desc{r.requests, r.waiting, r.dropped, r.retries, r.told, r.orphaned, r.refused}
}

// collect writes nothing where there is no relay.
func (r relayed) collect(to sender, s *relay.Stats, orphaned uint64) {
	if s == nil {
		return
	}
	to.count(r.requests, s.Forwarded, "sent")
	to.count(r.requests, s.Malformed, "malformed")
	to.count(r.requests, s.TooLarge, "too_large")
	to.count(r.requests, s.Unread, "unread")
	to.count(r.requests, s.Looped, "looped")
	for reason, n := range s.Refused {
		to.count(r.refused, n, word(string(reason)))
	}
	to.gauge(r.waiting, float64(s.WaitingBytes))
	// Those that never happened too: see Metrics.begin.
	dropped := map[relay.Reason]uint64{relay.Full: 0, relay.Refused: 0, relay.Nowhere: 0, relay.Closed: 0}
	for reason, n := range s.Dropped {
		dropped[reason] = n
	}
	for reason, n := range dropped {
		to.count(r.dropped, n, word(string(reason)))
	}
	to.count(r.retries, s.Retries)
	to.count(r.told, s.Told)
	to.count(r.orphaned, orphaned)
}
