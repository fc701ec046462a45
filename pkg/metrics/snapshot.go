package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// Snapshot holds the readings of other packages.
type Snapshot struct {
	Now               int64
	InFlight          []model.Flight
	Timeline          timeline.Stats
	Baselines, Slower int
	Forgotten         uint64
	Readings          []meter.Reading // of sources, destinations, log
}

type looker struct{ look func() Snapshot }

// Describe sends nothing: readings depend on the node.
func (looker) Describe(chan<- *prometheus.Desc) {}

func (l looker) Collect(to chan<- prometheus.Metric) {
	now := l.look()
	for _, all := range [][]meter.Reading{now.calls(), now.timeline(), now.usual(), now.Readings} {
		for _, r := range all {
			to <- metric(r)
		}
	}
}

func metric(r meter.Reading) prometheus.Metric {
	var names, values []string
	for i := 0; i+1 < len(r.Labels); i += 2 {
		names, values = append(names, r.Labels[i]), append(values, word(r.Labels[i+1]))
	}
	kind := prometheus.CounterValue
	if r.Kind == meter.Gauge {
		kind = prometheus.GaugeValue
	}
	desc := prometheus.NewDesc(namespace+"_"+r.Name, r.Help, names, nil)
	m, err := prometheus.NewConstMetric(desc, kind, r.Value, values...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

func (s Snapshot) calls() (all []meter.Reading) {
	type underWay struct {
		n      int
		oldest time.Duration
	}
	commands := map[string]underWay{"ADD": {}, "DEL": {}, "CHECK": {}, "GC": {}, "STATUS": {}}
	for _, flight := range s.InFlight {
		command := commandOf(flight.Command)
		calls := commands[command]
		calls.n++
		calls.oldest = max(calls.oldest, time.Duration(s.Now-flight.Start))
		commands[command] = calls
	}
	for command, calls := range commands {
		all = append(all,
			meter.Level("cni_calls_in_flight", "Calls in progress; cniscope ps lists them.", calls.n, cniCommand, command),
			meter.Level("cni_oldest_call_seconds", "Age of the oldest call in progress, 0 without any.", calls.oldest.Seconds(),
				cniCommand, command))
	}
	return all
}

func (s Snapshot) usual() []meter.Reading {
	return []meter.Reading{
		meter.Level("baselines", "Plugins and commands with a baseline.", s.Baselines),
		meter.Level("baselines_slower", "Plugins and commands that are slower than their baseline now.", s.Slower),
		meter.Count("baselines_forgotten_total", "Baselines dropped because of the limit of 128.", s.Forgotten),
	}
}

func (s Snapshot) timeline() []meter.Reading {
	return []meter.Reading{
		meter.Count("events_late_total", "Events of processes whose operation was over, for example of daemons.",
			s.Timeline.Late),
		meter.Count("runs_refused_total", "Plugin runs beyond limits.operations and limits.processes.", s.Timeline.Refused),
		meter.Count("unanchored_refused_total",
			"Plugin runs not started by the container runtime, beyond their half of limits.operations.", s.Timeline.Unanchored),
		meter.Count("work_after_dropped_total", "Commands that agents ran for a pod after its ADD, beyond the limit of 16.",
			s.Timeline.AfterDropped),
		meter.Count("operations_orphaned_total", "Operations whose containerd span did not arrive: separate traces.",
			s.Timeline.Orphaned),
	}
}
