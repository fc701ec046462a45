// Package event is the closed vocabulary of observations. Consumers do not know their source (the kernel probe, NRI,
// the CNI directory, a recording).
//
// Sources decode, bound and sanitize: no raw arguments, environment or configuration bytes, no control characters, no
// invalid UTF-8. No type is specific to Linux.
package event

// Event is one observation. The events of one source are in causal order.
type Event struct {
	// The end, in monotonic ns.
	Time int64
	Body Body
}

// Body is a pointer to a type in Kinds.
type Body interface {
	// Doer returns the acting process; empty for events of the node and samples.
	Doer() Process
}

// Sink receives a source's events in order. It may block: a source that must not needs a queue and reports drops as
// Lost.
type Sink func(Event)

// Process is an opaque key, unique until the node restarts.
type Process string

// Namespace is a network namespace.
type Namespace struct {
	// Unique until the node restarts.
	Key string `json:"key,omitempty"`
	// For people: on Linux the inode number, which is reused.
	Label string `json:"label,omitempty"`
}

// TraceContext is a W3C trace context.
type TraceContext struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

var sourceKinds = map[string]Body{
	"clock":    &Clock{},
	"lost":     &Lost{},
	"degraded": &Degraded{},
	"tick":     &Tick{},
	"origin":   &Origin{},
}

// Tick reports that all events before its Time were delivered. Timeouts run on ticks, not on a clock.
type Tick struct {
	// Lag is how far Time is behind the clock, in ns.
	Lag int64 `json:"lag,omitempty"`
}

// Clock ties the monotonic clock to the wall clock.
type Clock struct {
	// In ns since 1970.
	Wall int64 `json:"wall"`
}

// Lost reports dropped events.
type Lost struct {
	// "probe", "nri", "relay", or "recording" (for a slow recorder).
	Source string `json:"source"`
	// A fixed phrase: "ring full".
	Reason string `json:"reason"`
	// Since the last Lost of this reason.
	Count uint64 `json:"count"`
	// Gone: the process exited too early; otherwise cniscope was late.
	Gone bool `json:"gone,omitempty"`
	// The root of the plugin's tree; empty if any call in progress may be affected.
	Process Process `json:"process,omitempty"`
}

// OfProcesses reports whether process events may be lost. NRI and the relay report only sandboxes.
func (l *Lost) OfProcesses() bool { return l.Source != "nri" && l.Source != "relay" }

// Degraded reports once that a feature is unavailable.
type Degraded struct {
	Feature  string `json:"feature"`
	Reason   string `json:"reason"`
	Restored bool   `json:"restored,omitempty"`
}

// Origin reports how processes are observed.
type Origin struct {
	// "bpf"; or "bpf-commands", "connector", "etw" or "snapshots", which lack system calls.
	Source string `json:"source"`
	// Resolution is the lifetime in ns below which processes may be missed; 0 is none.
	Resolution int64 `json:"resolution,omitempty"`
}

func (*Origin) Doer() Process   { return "" }
func (*Tick) Doer() Process     { return "" }
func (*Clock) Doer() Process    { return "" }
func (*Lost) Doer() Process     { return "" }
func (*Degraded) Doer() Process { return "" }
