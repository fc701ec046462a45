package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/metrics"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/source"
)

// telemetry serves metrics and health. It is nil without an address.
type telemetry struct {
	counts *metrics.Metrics
	server *metrics.Server
	log    *slog.Logger
}

func serveTelemetry(o config.Options, n *node, sources *observer) *telemetry {
	if o.Metrics.Listen == "" {
		return nil
	}
	t := &telemetry{log: n.log, counts: metrics.New(metrics.Options{
		Version: n.version, Sources: sources.sources, Log: n.log,
		Look: func() metrics.Snapshot { return look(n, sources) },
	})}
	where := metrics.Where{
		Listen: o.Metrics.Listen, Health: o.Metrics.HealthListen, WebConfig: o.Metrics.WebConfig, User: peer.UID,
	}
	checks := metrics.Checks{Alive: n.alive, Ready: func() (string, bool) { return n.ready(sources) }}
	var err error
	if t.server, err = metrics.Serve(where, t.counts.Handler(), checks, n.log); err != nil {
		n.log.Warn("feature unavailable", "feature", "metrics", "reason", err)
		return nil
	}
	n.log.Info("serving metrics",
		"address", t.server.Address(), "health", t.server.Health(), "web_config", o.Metrics.WebConfig)
	return t
}

func (t *telemetry) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // do not wait for scrapes
	defer cancel()
	if err := t.server.Close(ctx); err != nil {
		t.log.Debug("closing the metrics' server", "error", err)
	}
}

func look(n *node, sources *observer) metrics.Snapshot {
	s := metrics.Snapshot{Now: clock.Monotonic(), Readings: append(n.out.Readings(), n.history.Readings()...)}
	for _, each := range sources.sources {
		s.Readings = append(s.Readings, each.Stats().Readings...)
	}
	s.Readings = append(append(s.Readings, n.leaks.readings()...), n.consumers.readings()...)
	if n.logLost != nil {
		s.Readings = append(s.Readings, meter.ByReason("log_lines_lost_total",
			"Log lines not written: limit (more than 20 at once of one text, or one a second), "+
				"reader (the reader of the log is too slow or gone).", n.logLost(), nil)...)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.InFlight, s.Timeline = n.pipeline.InFlight(), n.pipeline.Stats()
	s.Baselines, s.Slower = n.pipeline.Usual.Len(), n.pipeline.Usual.Slower()
	s.Forgotten = n.pipeline.Usual.Forgotten()
	return s
}

// ready reports whether calls are seen. Overload does not count, or a pod could block an update of the node.
func (n *node) ready(sources *observer) (report string, ok bool) {
	report = fmt.Sprintf("kernel probe: %s\nnri: %s", sources.state("probe"), sources.state("nri"))
	if overloaded := n.overload.report(); overloaded != "" {
		report += "\n" + overloaded
	}
	unready := func(s source.Source) bool { return s.Stats().Unready }
	return report, !slices.ContainsFunc(sources.sources, unready)
}

// pulse reports whether ticks come while calls are open. It has no lock: a holder might be stuck.
type pulse struct {
	last   atomic.Int64 // latest tick, or event while nothing was open; monotonic ns
	taking atomic.Bool
}

// stuckAfter is far above an event's µs and a tick's 50 ms.
const stuckAfter = 15 * time.Second

// begin returns the time since the last beat: a tick, or an event while nothing is open.
func (p *pulse) begin(now int64, beats bool) time.Duration {
	p.taking.Store(true)
	last := p.last.Load()
	if beats {
		p.last.Store(max(now, last))
	}
	return time.Duration(now - last)
}

func (p *pulse) end() { p.taking.Store(false) }

func (p *pulse) check(now int64, open bool) (report string, ok bool) {
	silent := time.Duration(now - p.last.Load())
	switch {
	case silent < stuckAfter:
	case p.taking.Load():
		return fmt.Sprintf("stuck for %s at one event", silent.Round(time.Second)), false
	case open:
		return fmt.Sprintf("no tick for %s, though calls are open", silent.Round(time.Second)), false
	}
	return "ok", true
}
