// Package config reads cniscope's options: TOML, checked as a whole, and read again when the file changes.
//
// The default, the environment, the file and the text of NRI's Configure set options; the last one wins.
// configs/cniscope.toml, docs/options.md and the chart's schema are generated from Options.
package config

//go:generate go run ./generate ../..

import (
	"path/filepath"
	"strings"
	"time"
)

// Options holds every option. Options from Parse, Load and Live never change.
//
// A field's comment is the option's description for users. Its tags are:
//
//	key      the name in the file, below its section's
//	default  as in the file, without quotes; words for a list; empty for the zero value
//	range    the least and the greatest value; of a list the most items
//	unit     "bytes" (a size), "bytes, a power of two", or what a number counts
//	oneof    the possible words
//	is       the check of a text, see textOf; the items of a list are patterns otherwise
//	reload   "live": a change takes effect at once; "restart" (default): after a restart
//	fixed    the version since which the option has no effect; its default holds, and setting it is a warning
//	was      a former name and the version that renamed it; "new" if its values have no effect
//	record   the key in a recording's header, for replays
//	linux    "only" if Windows lacks it; other defaults of Windows are in system.go
//	chart    "-" if the chart sets it from other values
//
// reload, record and chart of a section hold for its options; record is then the part before the dot.
type Options struct {
	// Which operations are exported. An operation is all CNI calls of one pod's network setup,
	// or of its teardown; cniscope decides when the operation ends.
	Sampling Sampling `key:"sampling" reload:"live" record:"judge"`
	// Above which durations something counts as slow. Slow operations are marked, kept and logged.
	Slow Slow `key:"slow" reload:"live" record:"judge"`
	// What operations look like as spans.
	Trace Trace `key:"trace"`
	// Where finished operations go. Without endpoint and path: nowhere.
	Export Export `key:"export"`
	// A receiver for containerd's own spans, for containerd 2.3 and older, which does not pass trace context to
	// CNI plugins. containerd exports its spans to cniscope, which forwards them unchanged and puts its own spans
	// below them. containerd 2.4 and later need no relay.
	Relay Relay `key:"relay"`
	// What every span says about its node.
	Resource Resource `key:"resource"`
	// Prometheus metrics (/metrics) and health for a kubelet (/healthz, /readyz). Every call is counted, also
	// calls that sampling drops. Without an address nothing listens. Any client that reaches the address can read
	// names and durations of plugins and commands, but no pods; web_config restricts access (docs/metrics.md).
	Metrics Metrics `key:"metrics" chart:"-"`
	// The container runtime's plugin interface, which names the pod of each sandbox. If it is off or
	// out of reach, every CNI call is still traced.
	NRI NRI `key:"nri" chart:"-"`
	// The container runtime. The process that serves its CRI socket is trusted to start plugins (docs/trust.md);
	// cniscope asks it for its version and whether the network is ready.
	Runtime Runtime `key:"runtime" chart:"-"`
	// The CNI configuration.
	CNI CNI `key:"cni" chart:"-"`
	// What cniscope reads from the kernel.
	Probe Probe `key:"probe"`
	// Bounds on memory. Data above a bound is dropped, counted and reported.
	Limits Limits `key:"limits" record:"timeline"`
	// Stale attachments and leases: an ADD without a DEL, an address of host-local's.
	Leaks Leaks `key:"leaks"`
	// cniscope's own log, written to standard error.
	Log Log `key:"log"`
	// Files that exist while cniscope runs.
	State State `key:"state" chart:"-"`
	// Who may query a running cniscope, besides root over its control socket.
	Control Control `key:"control" chart:"-"`

	system      System // that they are for
	environment judged
}

// Sampling says which operations are kept once they are over.
type Sampling struct {
	// Share of ordinary operations that is kept: 1.0 all, 0.1 every tenth, 0.0 none. Without it the variables
	// OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG count. A backend can read it from the spans' tracestate (ot=th).
	Ratio float64 `key:"ratio" default:"1" range:"0..1" record:"Ratio"`
	// Operations below a sampled span of the runtime are kept, those below one that was not sampled only as keep says;
	// ratio is for the rest. With false, ratio decides for all, and sets ot=th also below a parent.
	ParentBased bool `key:"parent_based" default:"true"`
	// Other ratios for single namespaces; the first rule that matches wins. A pattern may hold *, ? and [abc].
	//
	//	[[sampling.rule]]
	//	namespace = "kube-*"
	//	ratio = 0.01
	Rules []NamespaceRule `key:"rule" range:"..100" record:"Namespaces"`
	// Patterns for the namespaces whose pods may set their own sampling, by the annotation
	// cniscope.dev/sample: "always", "never" or a share such as "0.5" (NRI only). The annotation is stronger
	// than ratio, rule and keep. It is ignored in all other namespaces, because any pod author could hide a
	// pod or flood the backend.
	//
	//	annotation_namespaces = ["team-*"]
	Annotated []string `key:"annotation_namespaces" range:"..64" record:"Annotations" was:"sampling.annotations 0.2 new"`
	// Ordinary operations that are kept whole in any second; 0 is no limit. Slow, failed and hung operations and
	// slow sandboxes have twenty times as many. Of further operations, in a burst, only the calls' spans are kept
	// (cniscope.reduced); a log line after the burst counts them.
	PerSecond int `key:"per_second" default:"5" range:"0..10000" unit:"operations" record:"PerSecond"`
	// Operations that are kept whatever ratio says: "slow" (longer than a threshold of [slow]), "failed" (a call
	// failed), "hung" (a call was in progress longer than slow.hung), "partial" (events are missing),
	// "unusual" (slower than its baseline).
	Keep []string `key:"keep" default:"slow failed hung partial" oneof:"slow failed hung partial unusual" record:"Keep"`
}

// NamespaceRule gives namespaces a ratio. Its JSON names are those of recordings.
type NamespaceRule struct {
	Namespace string  `key:"namespace" is:"pattern" json:"Pattern"`
	Ratio     float64 `key:"ratio" range:"0..1"`
}

// Slow holds the durations above which something counts as slow.
type Slow struct {
	// Duration of one command that a plugin executes: iptables, ip, a script.
	Command time.Duration `key:"command" default:"250ms" range:"1us..24h" record:"Command"`
	// Duration of one CNI call: all plugins of one network, from the first start to the last exit.
	Call time.Duration `key:"call" default:"2s" range:"1us..24h" record:"Call"`
	// Duration of one connection of a plugin to an agent, or to another process.
	Agent time.Duration `key:"agent" default:"1s" range:"1us..24h" record:"Agent"`
	// Wait for one lock: a file lock or a kernel lock.
	Lock time.Duration `key:"lock" default:"250ms" range:"1us..24h" record:"Lock"`
	// Time after which a call that is still in progress is hung: it is logged and reported by a span at once.
	// A value above 30s reports calls that their plugin or kubelet has already given up.
	//
	// The default is below the time after which plugins stop by themselves: cilium-cni 30.6 s after its
	// agent stopped answering (measured), kubelet the whole sandbox after 4 min.
	Hung time.Duration `key:"hung" default:"20s" range:"1us..24h" reload:"restart" record:"timeline.Hung"`
	// Time in which the node's network becomes ready, at the node's start and later, before the delay is reported.
	Readiness time.Duration `key:"readiness" default:"60s" range:"1s..24h" reload:"restart"`
	// Time from a pod's setup to its first connection before the delay is reported. Only pods whose setup is
	// kept are watched, for 60s.
	FirstConnection time.Duration `key:"first_connection" default:"10s" range:"1ms..60s" reload:"restart" record:"late.At"`
	// true: learn the normal duration of each plugin and of each command that it executes, whatever the thresholds are.
	// If five of its last 20 calls take longer than the 99th percentile of at least 300 calls, it is slower than its
	// baseline: logged once, counted, and named by verdicts ("5× its p99 of 96ms"). `cniscope baseline` shows baselines.
	Baseline bool `key:"baseline" default:"true" record:"Baseline"`
	// Calls shorter than this never count as slower than their baseline.
	Floor time.Duration `key:"floor" default:"100ms" range:"1us..24h" fixed:"0.3" record:"Floor"`
	// Directory that keeps baselines over restarts, such as "/var/lib/cniscope". Empty: the directory of [export.spool],
	// and without a spool baselines are learned again after each start.
	BaselineDir string `key:"baseline_dir" is:"path" reload:"restart"`
	// Other thresholds for single commands; the first rule that matches wins. The pattern (*, ?, [abc]) is for the
	// name by which the command was called, or for the name of its file; upper and lower case are the same.
	//
	//	[[slow.rule]]
	//	command = "powershell*"
	//	threshold = "100ms"
	Rules []Rule `key:"rule" range:"..100" record:"Rules"`
}

// Rule is a threshold for commands. Its JSON names are those of recordings.
type Rule struct {
	Command   string        `key:"command" is:"pattern" json:"Pattern"` // case does not matter
	Threshold time.Duration `key:"threshold" range:"1us..24h"`
}

// Trace says how operations become spans.
type Trace struct {
	// true: a series of fast, equal commands (twenty runs of iptables by one plugin) becomes one span with
	// their number, total, longest duration and exit codes. Of an ordinary call, where nothing was slow or failed, only
	// plugins, commands and agents have spans. An ordinary pod is then a quarter of the spans and a fifth of the bytes
	// (docs/spool.md). A slow or failed command always has its own span, and verdicts are the same. Exports and the
	// spool are folded; a recording has every command.
	FoldCommands bool `key:"fold_commands" reload:"live" record:"fold"`
	// Patterns for the keys of the pod labels that leave the node, in spans and recordings; [] is no label. In a
	// pattern (*, ?, [abc]) * does not match a slash. The default is every label.
	//
	//	labels = ["app", "app.kubernetes.io/*"]
	Labels []string `key:"labels" default:"* */*" range:"..64"`
	// Patterns for the members of the runtime's W3C baggage that leave the node.
	Baggage []string `key:"baggage" range:"..64"`
}

// Export says where finished operations go.
type Export struct {
	// Operations that wait in memory while a destination cannot be reached. Further operations are
	// dropped and counted.
	Queue int `key:"queue" default:"512" range:"1..65536" unit:"operations"`
	// OTLP: Jaeger, an OpenTelemetry Collector, or another backend that takes it. Options that the file does not set
	// come from variables OTEL_EXPORTER_OTLP_…: ENDPOINT, PROTOCOL (grpc or http/protobuf), INSECURE, CERTIFICATE,
	// CLIENT_CERTIFICATE, CLIENT_KEY, HEADERS, COMPRESSION, TIMEOUT. Variables OTEL_EXPORTER_OTLP_TRACES_… override them.
	// With OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none they are ignored.
	OTLP OTLP `key:"otlp" reload:"live"`
	// A file of OTLP JSON, one line for each operation, readable by its owner only.
	File File `key:"file" reload:"live"`
	// A queue on disk in place of memory, so that an endpoint that is away for hours, a crash or a restart
	// loses no operation. Exported operations stay until they are the oldest; `cniscope show --since 1h` draws
	// them. Readable by its owner only. Operations are on disk within 5 s. If the disk is full or fails,
	// operations wait in memory, and the log says so.
	Spool Spool `key:"spool"`
}

// OTLP is the destination that speaks OTLP.
type OTLP struct {
	// Address of the backend; empty: nothing is sent. Without a path it is for OTLP over gRPC:
	// "http://127.0.0.1:4317". With a path it is for OTLP over HTTP with protobuf: "http://127.0.0.1:4318/v1/traces".
	// http:// is plain text, https:// is TLS; "collector.example:4317" is TLS unless insecure is true.
	Endpoint string `key:"endpoint" is:"endpoint"`
	// true: an endpoint without http:// or https:// is spoken to in plain text.
	Insecure bool `key:"insecure"`
	// PEM file of the certificate authorities that sign the server's certificate; empty: those of the system. Restart
	// cniscope after a change of the file.
	CA string `key:"ca" is:"path"`
	// PEM file of the client certificate, for a server that asks for one. cniscope reads it again for each connection.
	Cert string `key:"cert" is:"path"`
	// PEM file of the client certificate's private key.
	Key string `key:"key" is:"path"`
	// Headers of every request; their values are never shown.
	//
	//	headers = { authorization = "Bearer TOKEN", x-scope-orgid = "nodes" }
	Headers map[string]Secret `key:"headers"`
	// Compression of requests.
	Compression string `key:"compression" default:"none" oneof:"gzip none"`
	// Timeout of one request. A failed request is sent again, at growing intervals of up to 30 s, while its
	// operations wait in the queue.
	Timeout time.Duration `key:"timeout" default:"10s" range:"100ms..10m"`
}

// File is the destination that writes OTLP JSON lines.
type File struct {
	// Path of the file; empty: none is written. At 100 MiB it is renamed to end in .1, in place of the .1 before.
	Path string `key:"path" is:"path"`
	// Size at which the file is renamed.
	MaxBytes int64 `key:"max_bytes" default:"100MiB" range:"1MiB..1024GiB" unit:"bytes" fixed:"0.3"`
}

// Spool is where operations wait on disk for the OTLP destination.
type Spool struct {
	// Directory of the spool, such as "/var/lib/cniscope/spool"; empty: operations wait in memory. Only root may be
	// able to write to it and to the directories above it.
	Dir string `key:"dir" is:"path" chart:"-"`
	// Size of the spool. Above it the oldest operations are deleted, exported or not.
	// 256MiB hold 3800 to 5300 ordinary pods (docs/spool.md).
	MaxBytes int64 `key:"max_bytes" default:"256MiB" range:"16MiB..1024GiB" unit:"bytes"`
	// Age at which operations are deleted, exported or not. What cniscope finds in the spool at its start
	// is kept for that long from then on, whatever the clock says.
	MaxAge time.Duration `key:"max_age" default:"24h" range:"1m..8760h"`
}

// Relay is the receiver for containerd's own spans.
type Relay struct {
	// Loopback address that containerd exports to, such as "127.0.0.1:4319"; empty: off. Set
	// OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4319 and OTEL_EXPORTER_OTLP_PROTOCOL=grpc or http/protobuf in
	// containerd's environment. Only the container runtime and the programs of probe.callers are answered.
	Listen string `key:"listen" is:"loopback"`
	// Endpoint that containerd's spans are forwarded to, written as export.otlp.endpoint; empty: export.otlp.endpoint.
	// TLS, headers, compression and timeout are those of [export.otlp].
	Upstream string `key:"upstream" is:"endpoint" reload:"live"`
	// Time for which an operation's spans wait for containerd's. containerd exports every 5 s
	// (OTEL_BSP_SCHEDULE_DELAY); a shorter wait leaves spans without a parent.
	Wait time.Duration `key:"wait" default:"7s" range:"100ms..1m" record:"timeline.Wait"`
	// Memory for containerd's spans while the upstream cannot be reached. Further spans are dropped and
	// counted; containerd never waits.
	Queue int64 `key:"queue" default:"16MiB" range:"1MiB..1GiB" unit:"bytes"`
}

// Resource describes the node.
type Resource struct {
	// Attribute k8s.node.name. Empty: the variable NODE_NAME, otherwise the host name.
	Node string `key:"node"`
	// Attribute k8s.cluster.name.
	Cluster string `key:"cluster"`
	// Further resource attributes; service.name replaces "cniscope". Without them those of the variables
	// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME count.
	//
	//	attributes = { "deployment.environment.name" = "production" }
	Attributes map[string]string `key:"attributes" record:"node.Attributes"`
}

// Target returns the endpoint's host and port, by default its scheme's, and whether it is plain text.
func (o OTLP) Target() (hostPort string, plain bool) {
	scheme, rest, found := strings.Cut(o.Endpoint, "://")
	if !found {
		return o.Endpoint, o.Insecure
	}
	hostPort, _, _ = strings.Cut(rest, "/")
	return withPort(scheme, hostPort), scheme == "http"
}

func withPort(scheme, host string) string {
	switch {
	case strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']'):
		return host
	case scheme == "https":
		return host + ":443"
	}
	return host + ":80"
}

// Path returns the path of OTLP over HTTP; empty for OTLP over gRPC.
func (o OTLP) Path() string {
	_, rest, _ := strings.Cut(o.Endpoint, "://")
	if _, path, is := strings.Cut(rest, "/"); is {
		return "/" + strings.TrimSuffix(path, "?")
	}
	return ""
}

// RelayUpstream returns [export.otlp], with relay.upstream if set.
func (o Options) RelayUpstream() OTLP {
	upstream := o.Export.OTLP
	if o.Relay.Upstream != "" {
		upstream.Endpoint = o.Relay.Upstream
	}
	return upstream
}

// ReadFolder returns the directory of the read-only socket.
func (o Options) ReadFolder() string {
	if o.Control.ReadDir != "" {
		return o.Control.ReadDir
	}
	return filepath.Join(o.State.Dir, "read")
}

// BaselineFolder returns the directory of baselines, if they are kept.
func (o Options) BaselineFolder() string {
	if o.Slow.BaselineDir != "" {
		return o.Slow.BaselineDir
	}
	return o.Export.Spool.Dir
}
