package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/relay"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// Snapshot is what others count, at one moment.
type Snapshot struct {
	// Now is the moment on the monotonic clock, in ns, and Time on the calendar.
	Now  int64
	Time time.Time
	// InFlight are the calls under way.
	InFlight []timeline.Flight
	Timeline timeline.Stats
	// Exports are the destinations.
	Exports []export.Stats
	// LogLost are the log lines that were not written, by reason.
	LogLost map[string]uint64
	// Probe is nil while it is not attached, NRI and Relay where they are not wanted.
	Probe *probe.Stats
	NRI   *nri.Stats
	Relay *relay.Stats
}

// looker turns a snapshot into metrics.
type looker struct {
	look func() Snapshot

	inFlight, oldest                                                 *prometheus.Desc
	late, refused, unanchored                                        *prometheus.Desc
	waiting, waitingBytes, exported, dropped                         *prometheus.Desc
	retries, refusedSpans, panics, failing                           *prometheus.Desc
	spooled, unspooled, spoolBytes, spoolWaiting                     *prometheus.Desc
	attached, processes, environments, undecodable, observed, detail *prometheus.Desc
	bpfRuns, bpfTime, bpfMissed                                      *prometheus.Desc
	nriSessions, nriEvents, nriHandler                               *prometheus.Desc
	logLost                                                          *prometheus.Desc
	relay                                                            relayed
}

func newLooker(look func() Snapshot) *looker {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	}
	return &looker{
		look: look,

		inFlight: desc("cni_calls_in_flight", "CNI calls that have a plugin running now.", "command"),
		oldest:   desc("cni_oldest_call_seconds", "Age of the oldest CNI call in flight; 0 if there is none.", "command"),

		late:    desc("events_late_total", "Events of processes whose operation was over, or unknown."),
		refused: desc("runs_refused_total", "Plugin runs and processes beyond limits.operations and limits.processes."),

		unanchored: desc("unanchored_refused_total", "Plugin runs and processes that the container runtime did not start, beyond their half of limits.operations and limits.processes."),

		waiting:      desc("export_queue_operations", "Operations that wait for a destination, those on their way included.", "destination"),
		waitingBytes: desc("export_queue_bytes", "What they hold.", "destination"),
		exported:     desc("export_operations_sent_total", "Operations that have arrived.", "destination"),
		dropped:      desc("export_operations_dropped_total", "Kept operations that did not arrive.", "destination", "reason"),
		retries:      desc("export_retries_total", "Requests that failed and were, or will be, sent again.", "destination"),
		refusedSpans: desc("export_spans_refused_total", "Spans that the destination refused of operations that it took.", "destination"),
		panics:       desc("export_panics_total", "Panics of an exporter that were survived.", "destination"),
		failing:      desc("export_failing_seconds", "For how long nothing has arrived although it was tried; 0 while all is well.", "destination"),

		spooled:      desc("spool_operations_written_total", "Operations that were written to the spool.", "destination"),
		unspooled:    desc("spool_operations_unwritten_total", "Operations that could not be written, and waited in memory.", "destination"),
		spoolBytes:   desc("spool_bytes", "What the spool holds, exported or not.", "destination"),
		spoolWaiting: desc("spool_waiting_bytes", "How much of that waits for the destination.", "destination"),

		attached:     desc("probe_attached", "Whether the kernel probe sees CNI calls (1) or not (0)."),
		processes:    desc("probe_processes", "Processes in the kernel's table."),
		environments: desc("probe_environments_cut_total", "Programs whose environment was too long to be searched for CNI_COMMAND to its end."),
		observed:     desc("probe_seconds_total", "Time since the kernel probe was loaded."),
		detail:       desc("probe_detail_seconds_total", "Time in which the inside of plugins was looked into, and every system call of the node cost more."),
		undecodable:  desc("probe_records_undecodable_total", "Records of the kernel side that were not understood."),
		bpfMissed:    desc("bpf_program_missed_total", "Times the kernel did not run a BPF program because it was under way on that CPU: what it would have seen is lost.", "program"),
		bpfRuns:      desc("bpf_program_runs_total", "Runs of a BPF program; only while kernel.bpf_stats_enabled is set.", "program"),
		bpfTime:      desc("bpf_program_seconds_total", "Time spent in it.", "program"),

		nriSessions: desc("nri_sessions_total", "Registrations with the runtime."),
		nriEvents:   desc("nri_events_total", "Sandbox events that the runtime sent."),
		nriHandler:  desc("nri_handler_max_seconds", "The longest that a pod waited for one of cniscope's NRI handlers."),

		logLost: desc("log_lines_lost_total", "Log lines that were not written: too many of one text, or a reader that does not keep up.", "reason"),

		relay: newRelayed(desc),
	}
}

// Describe lists what Collect may give.
func (l *looker) Describe(to chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(l.relay.all(), []*prometheus.Desc{
		l.inFlight, l.oldest, l.late, l.refused, l.unanchored,
		l.waiting, l.waitingBytes, l.exported, l.dropped, l.retries, l.refusedSpans, l.panics, l.failing,
		l.spooled, l.unspooled, l.spoolBytes, l.spoolWaiting,
		l.attached, l.processes, l.environments, l.undecodable, l.observed, l.detail, l.bpfRuns, l.bpfTime, l.bpfMissed,
		l.nriSessions, l.nriEvents, l.nriHandler, l.logLost,
	}) {
		to <- d
	}
}

// sender writes metrics of one snapshot.
type sender chan<- prometheus.Metric

func (s sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sender) count(d *prometheus.Desc, n uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// Collect takes one snapshot.
func (l *looker) Collect(metrics chan<- prometheus.Metric) {
	now, to := l.look(), sender(metrics)
	for command, calls := range byCommand(now) {
		to.gauge(l.inFlight, float64(calls.n), command)
		to.gauge(l.oldest, calls.age.Seconds(), command)
	}
	to.count(l.late, now.Timeline.Late)
	to.count(l.refused, now.Timeline.Refused)
	unanchored := now.Timeline.Unanchored
	if now.Probe != nil {
		unanchored += now.Probe.ShareFull
	}
	to.count(l.unanchored, unanchored)
	for _, destination := range now.Exports {
		l.export(to, destination, now.Time)
	}
	if p := now.Probe; p != nil {
		to.gauge(l.attached, 1)
		l.probe(to, p)
	} else {
		to.gauge(l.attached, 0)
	}
	if n := now.NRI; n != nil {
		to.count(l.nriSessions, n.Sessions)
		to.count(l.nriEvents, n.Received)
		to.gauge(l.nriHandler, n.Handler.Max.Seconds())
	}
	for reason, n := range now.LogLost {
		to.count(l.logLost, n, reason)
	}
	l.relay.collect(to, now.Relay, now.Timeline.Orphaned)
}

type underWay struct {
	n   int
	age time.Duration // of the oldest
}

// byCommand has an entry for every command a runtime uses, also where nothing is under way.
func byCommand(now Snapshot) map[string]underWay {
	all := map[string]underWay{"ADD": {}, "DEL": {}, "CHECK": {}, "GC": {}, "STATUS": {}}
	for _, flight := range now.InFlight {
		command := commandOf(flight.Command)
		calls := all[command]
		calls.n++
		calls.age = max(calls.age, time.Duration(now.Now-flight.Start))
		all[command] = calls
	}
	return all
}

func (l *looker) export(to sender, d export.Stats, now time.Time) {
	to.gauge(l.waiting, float64(d.Waiting), d.Name)
	to.gauge(l.waitingBytes, float64(d.WaitingBytes), d.Name)
	to.count(l.exported, d.Exported, d.Name)
	to.count(l.retries, d.Retries, d.Name)
	to.count(l.refusedSpans, d.RefusedSpans, d.Name)
	to.count(l.panics, d.Panics, d.Name)
	// Those that never happened too: see Metrics.begin.
	dropped := map[export.Reason]uint64{export.Full: 0, export.Rejected: 0, export.TooLarge: 0, export.Closed: 0}
	if disk := d.Spool; disk != nil {
		dropped[export.SpoolFull], dropped[export.SpoolOld], dropped[export.Damaged] = 0, 0, 0
		to.count(l.spooled, d.Spooled, d.Name)
		to.count(l.unspooled, d.Unspooled, d.Name)
		to.gauge(l.spoolBytes, float64(disk.Bytes), d.Name)
		to.gauge(l.spoolWaiting, float64(disk.Waiting), d.Name)
	}
	for reason, n := range d.Dropped {
		dropped[reason] = n
	}
	for reason, n := range dropped {
		to.count(l.dropped, n, d.Name, word(string(reason)))
	}
	failing := 0.0
	if !d.FailingSince.IsZero() {
		failing = max(0, now.Sub(d.FailingSince).Seconds())
	}
	to.gauge(l.failing, failing, d.Name)
}

func (l *looker) probe(to sender, p *probe.Stats) {
	to.gauge(l.processes, float64(p.Tracked))
	to.count(l.environments, p.LongEnvironment)
	to.count(l.undecodable, p.Undecodable)
	to <- prometheus.MustNewConstMetric(l.observed, prometheus.CounterValue, p.Observed.Seconds())
	to <- prometheus.MustNewConstMetric(l.detail, prometheus.CounterValue, p.Attached.Seconds())
	for program, stats := range p.Programs {
		to.count(l.bpfMissed, stats.Missed, program)
		if stats.Runs == 0 {
			continue // the kernel's statistics are off
		}
		to.count(l.bpfRuns, stats.Runs, program)
		to <- prometheus.MustNewConstMetric(l.bpfTime, prometheus.CounterValue, stats.Time.Seconds(), program)
	}
}
