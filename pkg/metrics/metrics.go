// Package metrics counts all finished operations, before sampling, and serves counts and health. Series depend on
// plugins and commands; no label holds a pod.
package metrics

import (
	"encoding/hex"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/text"
)

// callBuckets are seconds: pods should start within 5 s (Kubernetes, slos/pod_startup_latency); a sandbox times out
// after 4 minutes.
var callBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 240}

// commandBuckets are for commands: iptables alone lasts 1 to 3 ms.
var commandBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

var gapBuckets = []float64{.06, .08, .1, .15, .25, .5, 1, 2.5, 5, 15}

// Options configure Metrics.
type Options struct {
	Version string
	Sources []source.Source
	// Look returns other readings at each scrape, concurrently; may be nil.
	Look func() Snapshot
	Log  *slog.Logger
}

// Metrics has its own registry. Result and Event are for one goroutine, beside concurrent scrapes and gaps.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger

	calls, plugins, commands, gaps, connected                        *prometheus.HistogramVec
	outcomes, verdicts, spent, hung, slow, unusual, operations, lost *prometheus.CounterVec
	features, changed                                                *prometheus.GaugeVec
	lag                                                              prometheus.Gauge
	readiness                                                        readiness
	pluginNames, commandNames, sayings                               text.Names
}

// New registers all metrics.
func New(o Options) *Metrics {
	registry := prometheus.NewRegistry()
	all := registering{promauto.With(registry)}
	m := &Metrics{
		registry: registry, log: o.Log, readiness: newReadiness(all),
		calls: all.histogram("cni_call_seconds",
			"Histogram of CNI calls, from the first plugin's start to the last one's end: what a pod waits for.",
			callBuckets, cniCommand, "plugin", "result"),
		plugins: all.histogram("cni_plugin_seconds",
			"Histogram of plugin runs, IPAM and other delegated plugins included: which plugin it is.",
			callBuckets, cniCommand, "plugin", "result"),
		commands: all.histogram("command_seconds",
			"Histogram of commands, without daemons that a plugin leaves behind.",
			commandBuckets, "command"),
		outcomes: all.counter("cni_calls_total",
			"Calls by the first outcome that applies: failed, slow, slow_command, slow_agent, slow_lock (a part was slow), "+
				"ordinary.",
			cniCommand, "outcome"),
		verdicts: all.counter("cni_verdicts_total",
			"Slow, failed and hung calls by cause; an exemplar for each cause.",
			cniCommand, "cause"),
		spent: all.counter("cni_time_seconds_total",
			"Duration of finished calls by cause; none for ordinary ones. Its rate for ADD is the number of pods that wait "+
				"at one time.",
			cniCommand, "cause"),
		hung: all.counter("cni_calls_hung_total",
			"Calls in progress longer than slow.hung, counted at that moment.",
			cniCommand),
		slow: all.counter("slow_commands_total",
			"Commands longer than slow.command or their rule.",
			"command"),
		unusual: all.counter("cni_unusual_calls_total",
			"Calls slower than usual. They are ordinary and without a cause, unless a threshold was exceeded.",
			cniCommand, "plugin"),
		changed: all.gauge("cni_change_ratio",
			"Median duration of 50 calls after the last change of the plugin or its configuration, divided by that before; "+
				"absent until then.",
			cniCommand, "plugin"),
		operations: all.counter("operations_total",
			"Operations that were kept, reduced (to their calls, in a storm) or dropped, by the first reason.",
			"decision", "reason"),
		lost: all.counter("events_lost_total",
			"Lost events. Affected calls are marked partial.",
			"source", "reason"),
		lag: all.gauge("probe_lag_seconds",
			"Age of the oldest unread event of the kernel; 0 while the reader keeps up.").WithLabelValues(),
		gaps: all.histogram("tick_gap_seconds",
			"Time between ticks while an operation is in progress, normally 50 to 100 ms.", gapBuckets),
		connected: all.histogram("first_connection_seconds",
			"Time from a sampled ADD's end to the pod's first TCP connection, up to 60 s.", callBuckets),
		features: all.gauge("feature_up",
			"Whether an enabled feature is available (1) or not (0).", "feature"),
	}
	all.gauge("build_info", "Always 1; the labels name the running program.", "version", "goversion", "arch").
		WithLabelValues(o.Version, runtime.Version(), runtime.GOARCH).Set(1)
	registry.MustRegister(collectors.NewGoCollector())
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if o.Look != nil {
		m.registry.MustRegister(looker{o.Look})
	}
	m.begin(o.Sources)
	return m
}

// begin creates alerts' series: Prometheus' increase() misses a new one's first increment.
func (m *Metrics) begin(sources []source.Source) {
	m.gaps.WithLabelValues()
	m.connected.WithLabelValues()
	for _, command := range []string{"ADD", "DEL"} {
		for _, o := range outcomes() {
			m.outcomes.WithLabelValues(command, o.name)
		}
		m.hung.WithLabelValues(command)
		m.spent.WithLabelValues(command, noCause)
		for _, about := range judge.Causes() {
			m.verdicts.WithLabelValues(command, string(about.Cause))
			m.spent.WithLabelValues(command, string(about.Cause))
		}
	}
	for _, s := range sources {
		stats := s.Stats()
		for _, reason := range stats.Losses {
			m.lost.WithLabelValues(s.Name(), word(reason))
		}
		for _, feature := range stats.Features {
			m.features.WithLabelValues(word(feature)).Set(1)
		}
	}
}

// Result counts a finished operation, or a hung call.
func (m *Metrics) Result(r pipeline.Result) {
	switch r := r.(type) {
	case *pipeline.Hung:
		m.hung.WithLabelValues(commandOf(r.Command)).Inc()
	case *pipeline.Judged:
		m.judged(r)
	case *pipeline.Connected:
		if !r.Never {
			observe(m.connected.WithLabelValues(), time.Duration(r.At-r.End), nil)
		}
	}
}

func (m *Metrics) judged(r *pipeline.Judged) {
	m.operations.WithLabelValues(decision(r.Judgement), m.saying(reason(r.Judgement))).Inc()
	for _, f := range r.Judgement.Findings {
		if f.Kind == baseline.Changed && f.Key.Program == "" {
			m.changed.WithLabelValues(commandOf(f.Command), m.plugin(f.Plugin)).Set(f.Ratio())
		}
	}
	for _, call := range r.Operation.Calls {
		verdict := r.Judgement.Calls[call]
		seen := exemplar(r, call)
		command := commandOf(call.Command)
		m.outcomes.WithLabelValues(command, OutcomeOf(verdict)).Inc()
		cause := noCause
		if r.Judgement.Slower(call) {
			m.unusual.WithLabelValues(command, m.plugin(call.Main())).Inc()
		}
		if v := verdict.Verdict; v != nil && !verdict.Unusual {
			cause = string(v.Cause)
			add(m.verdicts.WithLabelValues(command, cause), 1, seen)
		}
		m.spent.WithLabelValues(command, cause).Add(verdict.Took.Seconds())
		if call.First != nil && seen != nil {
			observe(m.connected.WithLabelValues(), time.Duration(max(0, call.First.At-call.End)), seen)
		}
		observe(m.calls.WithLabelValues(command, m.plugin(call.Main()), callResult(call, verdict)), verdict.Took, seen)
		for _, run := range call.Runs {
			run.Walk(func(im *model.Image) { m.image(im, r.Judgement, seen) })
		}
	}
}

func (m *Metrics) image(im *model.Image, j *judge.Judgement, seen prometheus.Labels) {
	took := time.Duration(im.End - im.Start)
	if im.Run != nil {
		observe(m.plugins.WithLabelValues(commandOf(im.Run.Command), m.plugin(im.Run.Plugin), imageResult(im)), took, seen)
		return
	}
	if im.Outlived && !im.Ended {
		return // daemons are not followed beyond their plugin
	}
	name := m.commandNames.Limit(im.Name, other)
	observe(m.commands.WithLabelValues(name), took, seen)
	if _, slow := j.Slow[im]; slow {
		m.slow.WithLabelValues(name).Inc()
	}
}

// Wants reports whether Event counts a type.
func (m *Metrics) Wants(body event.Body) bool {
	switch body.(type) {
	case *event.Lost, *event.Readiness, *event.Tick, *event.Degraded:
		return true
	}
	return false
}

// Event counts losses, readiness, lag and features.
func (m *Metrics) Event(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Lost:
		m.lost.WithLabelValues(m.saying(b.Source), m.saying(b.Reason)).Add(float64(b.Count))
	case *event.Readiness:
		m.readiness.said(e.Time, b)
	case *event.Tick:
		m.readiness.tick(e.Time)
		m.lag.Set(time.Duration(b.Lag).Seconds())
	case *event.Degraded:
		up := 0.0
		if b.Restored {
			up = 1
		}
		m.features.WithLabelValues(m.saying(b.Feature)).Set(up)
	}
}

// Gap observes the time between two ticks.
func (m *Metrics) Gap(gap time.Duration) { m.gaps.WithLabelValues().Observe(gap.Seconds()) }

// Handler serves OpenMetrics with exemplars on request.
func (m *Metrics) Handler() http.Handler {
	scrape := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: scrapesMax,
		ErrorLog:            slog.NewLogLogger(m.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
	})
	// TimeoutHandler buffers, so slow clients do not block scrapes.
	return http.TimeoutHandler(scrape, scrapeTimeout, "the scrape took longer than "+scrapeTimeout.String()+"\n")
}

const (
	scrapesMax    = 4
	scrapeTimeout = 10 * time.Second // Prometheus' default
)

func exemplar(r *pipeline.Judged, call *model.Call) prometheus.Labels {
	id, sent := r.IDs[call]
	if !r.Judgement.Keep || !sent || id == (oteltrace.TraceID{}) {
		return nil
	}
	return prometheus.Labels{"trace_id": hex.EncodeToString(id[:])}
}

func observe(to prometheus.Observer, took time.Duration, seen prometheus.Labels) {
	if seen == nil {
		to.Observe(took.Seconds())
		return
	}
	to.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), seen)
}

func add(to prometheus.Counter, n float64, seen prometheus.Labels) {
	if seen == nil {
		to.Add(n)
		return
	}
	to.(prometheus.ExemplarAdder).AddWithExemplar(n, seen)
}

const (
	namespace  = "cniscope"
	noCause    = "none"
	cniCommand = "cni_command"
)

// registering registers each metric that it makes.
type registering struct{ promauto.Factory }

func (f registering) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help,
		Buckets: buckets,
	}, labels)
}

func (f registering) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func (f registering) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

type readiness struct {
	ready *prometheus.GaugeVec // absent while unknown
	lost  *prometheus.CounterVec
	waits *prometheus.CounterVec
	lacks event.Lack
	since int64 // of uncounted time, monotonic ns; 0 while ready
}

func newReadiness(all registering) readiness {
	return readiness{
		ready: all.gauge("node_network_ready",
			"1 if the runtime reports the network as ready, otherwise 0; absent if the runtime does not answer."),
		lost: all.counter("node_network_not_ready_seconds_total", "Time in which the network was not ready."),
		waits: all.counter("node_network_awaited_seconds_total",
			"Time in which the network was not ready, by the missing step.", "cause"),
	}
}

func (r *readiness) said(now int64, b *event.Readiness) {
	if b.Lacks != "" && r.lacks == "" {
		r.lacks = b.Lacks // the missing part comes soon
	}
	r.tick(now)
	r.since, r.lacks = now, b.Lacks
	up := 0.0
	if b.Ready {
		r.since, up = 0, 1
	}
	r.ready.WithLabelValues().Set(up)
	r.lost.WithLabelValues()
}

func (r *readiness) tick(now int64) {
	if r.since != 0 && now > r.since {
		lost := time.Duration(now - r.since).Seconds()
		r.lost.WithLabelValues().Add(lost)
		if r.lacks != "" {
			r.waits.WithLabelValues(string(r.lacks)).Add(lost)
		}
		r.since = now
	}
}
