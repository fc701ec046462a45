package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// readiness counts how long the node's network was not ready.
type readiness struct {
	ready *prometheus.GaugeVec // absent while nobody knows
	lost  *prometheus.CounterVec
	since int64 // of what is not counted yet, in monotonic ns; 0 while it is ready
}

func newReadiness() readiness {
	return readiness{
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "node_network_ready",
			Help: "Whether the runtime takes the node's network to be ready.",
		}, nil),
		lost: counter("node_network_not_ready_seconds_total", "Time in which the node's network was not ready."),
	}
}

// said takes what the runtime says.
func (r *readiness) said(now int64, ready bool) {
	r.tick(now)
	r.since = now
	up := 0.0
	if ready {
		r.since, up = 0, 1
	}
	r.ready.WithLabelValues().Set(up)
	r.lost.WithLabelValues()
}

// tick counts what has passed.
func (r *readiness) tick(now int64) {
	if r.since != 0 && now > r.since {
		r.lost.WithLabelValues().Add(time.Duration(now - r.since).Seconds())
		r.since = now
	}
}
