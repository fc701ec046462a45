// Package config reads cniscope's options: TOML, checked as a whole before any of
// it is used, reloaded when the file changes.
//
// An option comes from, the strongest last: the default, the environment, the file, and the text that NRI's
// Configure hands over. What each option means is said once, in configs/cniscope.toml; how it is checked is
// said once, in schema.go. Nothing here acts on an option.
package config

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
)

// Options is every option, checked. Options are values: what Parse, Load and
// Watch hand out is never changed afterwards.
type Options struct {
	Sampling Sampling
	Slow     Slow
	Trace    Trace
	Export   Export
	Relay    Relay
	Resource Resource
	Metrics  Metrics
	NRI      NRI
	Runtime  Runtime
	CNI      CNI
	Probe    Probe
	Limits   Limits
	Leaks    Leaks
	Log      Log
	State    State
	Control  Control

	system System // that they are for
}

// Sampling says which operations are kept once they are over.
type Sampling struct {
	Ratio float64         // share of ordinary operations that is kept, 0 to 1
	Rules []NamespaceRule // the first that matches wins
	// AnnotationNamespaces are patterns of path.Match for the namespaces in which the
	// annotation cniscope.dev/sample of a pod counts.
	AnnotationNamespaces []string
	// PerSecond is how many operations are kept whole in any second; of what comes on
	// top only the calls are. 0 is no limit.
	PerSecond int
	// Keep names what is kept whatever the ratio says: "slow", "failed", "partial", "hung", "unusual".
	Keep []string
}

// NamespaceRule gives the pods of some namespaces a ratio of their own.
type NamespaceRule struct {
	Namespace string  // pattern of path.Match for the pod's namespace
	Ratio     float64 // share of its ordinary operations that is kept, 0 to 1
}

// Slow holds the durations above which something counts as slow.
type Slow struct {
	Command time.Duration
	Call    time.Duration
	// Agent is for a connection to another process, Lock for one wait for a lock.
	Agent, Lock time.Duration
	// Hung is how long a call may be under way before it is reported. The default is below the time after
	// which plugins give up by themselves: cilium-cni 30.6 s after its agent fell silent (measured), kubelet
	// the whole sandbox after 4 min (runtimeRequestTimeout twice). What is reported later is over.
	Hung time.Duration
	// Readiness is how long the node's network may take to be ready until that is reported.
	Readiness time.Duration
	// FirstConnection is how long after its setup a pod's first connection may come.
	FirstConnection time.Duration
	// Baseline says that it is learnt how long each plugin and command takes as a rule, Floor what is never slower
	// than usual. BaselineDir is where that is kept; empty for the spool's folder.
	Baseline    bool
	Floor       time.Duration
	BaselineDir string
	Rules       []Rule // for single commands; the first that matches wins
}

// Rule is a threshold for the commands that a pattern matches.
type Rule struct {
	// Command is a pattern of path.Match for the name a command was called by, or
	// for the base name of its file. Upper and lower case are the same.
	Command   string
	Threshold time.Duration
}

// Trace says how operations become spans.
type Trace struct {
	// FoldCommands makes one span of a series of fast, equal commands, where spans leave (trace.Fold).
	FoldCommands bool
	// Labels are patterns of path.Match for the keys of the pods' labels that leave the node.
	Labels []string
}

// Export says where finished operations go.
type Export struct {
	Queue int // most operations that wait for one destination
	OTLP  OTLP
	File  File
	Spool Spool
}

// OTLP is the destination that speaks OTLP over gRPC.
type OTLP struct {
	// Endpoint is http://host:port, https://host:port or host:port; empty where nothing is sent. See Target.
	Endpoint string
	// Insecure says that a bare host:port is spoken to without TLS.
	Insecure bool
	// CA, Cert and Key are PEM files: whom to trust (empty: the system's roots), and
	// who cniscope is to a server that asks.
	CA, Cert, Key string
	// Headers are sent with every request; the names are lower-case.
	Headers     map[string]Secret
	Compression string        // "gzip" or "none"
	Timeout     time.Duration // of one request
}

// Target returns what is dialled and whether it is in plain text: http:// is plain, https:// is TLS, a bare
// host:port is TLS unless Insecure says otherwise (OpenTelemetry specification, protocol/exporter: a scheme
// is stronger than "insecure"). Empty where no endpoint is set.
func (o OTLP) Target() (hostPort string, plain bool) {
	scheme, rest, found := strings.Cut(o.Endpoint, "://")
	if !found {
		return o.Endpoint, o.Insecure
	}
	hostPort, _, _ = strings.Cut(rest, "/")
	return hostPort, scheme == "http"
}

// Path returns the path of OTLP over HTTP; empty for OTLP over gRPC, whose endpoint has none.
func (o OTLP) Path() string {
	_, rest, _ := strings.Cut(o.Endpoint, "://")
	if _, path, _ := strings.Cut(rest, "/"); path != "" {
		return "/" + path
	}
	return ""
}

// File is the destination that writes OTLP JSON lines.
type File struct {
	Path     string // empty where none is written
	MaxBytes int64  // size at which it is rotated
}

// Spool is where operations wait on disk for the OTLP destination.
type Spool struct {
	Dir      string        // empty where operations wait in memory
	MaxBytes int64         // most that it holds
	MaxAge   time.Duration // how long operations are kept, exported or not
}

// Relay is the receiver for containerd's own spans.
type Relay struct {
	// Listen is an IP of loopback and a port; empty where nothing is received.
	Listen string
	// Upstream is where the spans go on to, written as OTLP.Endpoint; empty where they go there.
	Upstream string
	Wait     time.Duration // how long an operation that is over waits for the spans
	Queue    int64         // most bytes that wait for the upstream
}

// RelayUpstream is the destination of relayed spans: as [export.otlp] says, but for the
// endpoint if there is another.
func (o Options) RelayUpstream() OTLP {
	upstream := o.Export.OTLP
	if o.Relay.Upstream != "" {
		upstream.Endpoint = o.Relay.Upstream
	}
	return upstream
}

// Resource is what every span's resource says about the node.
type Resource struct {
	Node       string            // k8s.node.name
	Cluster    string            // k8s.cluster.name; empty where it is not known
	Attributes map[string]string // added as they are
}

// Metrics is where counts and health are served.
type Metrics struct {
	// Listen is host:port, or :port for every address of the node; empty where nothing is served.
	Listen string
	// HealthListen is where health alone is served, to everybody, beside Listen; empty for nowhere.
	HealthListen string
	// WebConfig is the file that says who may read (prometheus/exporter-toolkit); empty for everybody.
	WebConfig string
}

// NRI is how the runtime's plugin interface is reached.
type NRI struct {
	Enabled bool
	Socket  string // used where the runtime did not start cniscope itself
}

// Runtime is how the container runtime is reached: its CRI socket.
type Runtime struct{ Socket string }

// CNI is where the runtime's network configuration lies.
type CNI struct{ ConfDir string }

// Probe is what the kernel probe reads.
type Probe struct {
	// Source is by what means processes are observed: SourceAuto, or the name of one.
	Source string
	Ring   int64 // bytes of the ring buffer, a power of two
	// Arguments says which arguments of commands are shown: ArgumentsKnown, ArgumentsNone or ArgumentsAll.
	Arguments string
	// Detail says when system calls of plugins are observed: DetailAuto, DetailAlways or
	// DetailCommands. Linger is how long DetailAuto goes on after the last call.
	Detail string
	Linger time.Duration
	// Agents are patterns of path.Match for the names of agents to follow before a plugin has called them.
	Agents []string
	// AgentDepth is how far agents are followed: 0 not at all, 1 those that plugins call,
	// 2 also those that these call.
	AgentDepth int
	// Callers are patterns for the paths of programs that run CNI plugins, besides whoever
	// serves nri.socket and runtime.socket. Rootless admits such programs in a user namespace.
	Callers  []string
	Rootless bool
}

// What Probe.Source may be.
const (
	SourceAuto      = "auto"      // BPF programs, and where these are refused the process connector
	SourceBPF       = "bpf"       // BPF programs or nothing
	SourceConnector = "connector" // the process connector: plugins and commands, not their inside
	// Of Windows: its event tracing, and snapshots of the table of processes where that is refused.
	SourceETW       = "etw"
	SourceSnapshots = "snapshots"
)

// sources are what Probe.Source may be on a system.
func (s System) sources() []string {
	if s == Windows {
		return []string{SourceAuto, SourceETW, SourceSnapshots}
	}
	return []string{SourceAuto, SourceBPF, SourceConnector}
}

// What Probe.Arguments may be.
const (
	ArgumentsKnown = "known" // what the allow-list of a known tool lets through
	ArgumentsNone  = "none"  // no argument
	ArgumentsAll   = "all"   // every argument, secrets among them
)

// What Probe.Detail may be.
const (
	DetailAuto     = "auto"     // while a call is under way, and for Linger after it
	DetailAlways   = "always"   // all the time
	DetailCommands = "commands" // never: only runs and commands are seen
)

// Limits bound what is held in memory.
type Limits struct {
	// Settle is how long a call waits for its next plugin, and an operation for its next call.
	Settle     time.Duration
	MaxHold    time.Duration // how long an operation is held at most
	Processes  int           // followed at one time
	Operations int           // open at one time
	Images     int           // executed programs kept of one operation
	Facts      int           // waits, requests and changes kept of one operation
	MinSpan    time.Duration // how long a wait or request lasts that has a span of its own
}

// Log is what cniscope says of itself, on standard error.
type Log struct {
	Level  string // "debug", "info", "warn" or "error"
	Format string // "text" or "json"
}

// Leaks is what sandboxes that are gone still hold of the network.
type Leaks struct {
	// After is how old an ADD or a lease must be to be called leaked; see pkg/leak.
	After time.Duration
}

// State is where cniscope keeps what lives only as long as it runs: the node's lock and the control socket.
type State struct{ Dir string }

// Control says who may ask a running cniscope, besides root.
type Control struct {
	// ReadGroup is the group, by name or number, whose members may read over the socket read.sock in ReadDir;
	// empty where there is no such socket.
	ReadGroup string
	// ReadDir is the socket's folder; empty for "read" in State.Dir.
	ReadDir string
}

// ReadFolder is the folder of the read-only socket.
func (o Options) ReadFolder() string {
	if o.Control.ReadDir != "" {
		return o.Control.ReadDir
	}
	return filepath.Join(o.State.Dir, "read")
}

// BaselineFolder is where what is usual is kept; empty if it is not.
func (o Options) BaselineFolder() string {
	if o.Slow.BaselineDir != "" {
		return o.Slow.BaselineDir
	}
	return o.Export.Spool.Dir
}

// Default returns the options of an empty file in an empty environment, on this system.
func Default() Options { return DefaultFor(Here()) }

// DefaultFor is Default on another system.
func DefaultFor(on System) Options {
	there := on.places()
	return Options{
		system:   on,
		Sampling: Sampling{Ratio: 1, PerSecond: 5, Keep: []string{"slow", "failed", "hung", "partial"}},
		Slow:     Slow{Command: 250 * time.Millisecond, Call: 2 * time.Second, Agent: time.Second, Lock: 250 * time.Millisecond, Hung: 20 * time.Second, Readiness: time.Minute, FirstConnection: 10 * time.Second, Baseline: true, Floor: 100 * time.Millisecond},
		// Every label: a key has one slash or none.
		Trace: Trace{Labels: []string{"*", "*/*"}},
		Export: Export{
			Queue: 512,
			// The time-out and the missing compression are those of the OpenTelemetry
			// specification (protocol/exporter, "Configuration Options").
			OTLP: OTLP{Compression: "none", Timeout: 10 * time.Second},
			File: File{MaxBytes: 100 << 20},
			// Setup and teardown of how many pods: docs/spool.md.
			Spool: Spool{MaxBytes: 256 << 20, MaxAge: 24 * time.Hour},
		},
		// Containerd's exporter sends every 5 s (OTEL_BSP_SCHEDULE_DELAY unless set), and
		// then its request needs some time.
		Relay:   Relay{Wait: 7 * time.Second, Queue: 16 << 20},
		NRI:     NRI{Enabled: there.nri, Socket: there.socket},
		Runtime: Runtime{Socket: there.runtime},
		CNI:     CNI{ConfDir: there.networks},
		Probe:   Probe{Source: SourceAuto, Ring: 2 << 20, Arguments: ArgumentsKnown, Detail: DetailAuto, Linger: 30 * time.Second, AgentDepth: 1},
		Limits: Limits{
			Settle:     2 * time.Second,
			MaxHold:    10 * time.Minute,
			Processes:  8192,
			Operations: 1024,
			Images:     2000,
			Facts:      1000,
			MinSpan:    time.Millisecond,
		},
		Leaks: Leaks{After: 5 * time.Minute},
		Log:   Log{Level: "info", Format: "text"},
		State: State{Dir: there.state},
	}
}

const redacted = "[redacted]"

// Secret is text that is used and never shown: whatever prints, logs or encodes
// it gets "[redacted]". Reveal returns the text.
type Secret struct{ text string }

// NewSecret keeps text from being shown.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.text }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter: no verb, %#v and %x among them, shows more than String.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, for every encoder, also that of JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
