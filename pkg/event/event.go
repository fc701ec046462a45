// Package event is the closed vocabulary of observations; consumers do not know their source (kernel probe, NRI, CNI
// directory, recording).
//
// Sources decode, bound and sanitize: no raw arguments, environment or configuration, no control characters, no invalid
// UTF-8. No type is specific to Linux.
package event

// Event is one observation. The events of one source are in causal order.
type Event struct {
	// The activity's end, in monotonic ns.
	Time int64
	Body Body
}

// Body is a pointer to one of the types that Kinds lists.
type Body interface {
	// Doer returns the acting process; empty for events of the node and samples.
	Doer() Process
}

// Sink receives a source's events in order. It may block, so a source that must not block needs a queue, and reports
// drops as Lost.
type Sink func(Event)

// Process is an opaque key of a process, unique until the node restarts.
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
	// How far Time is behind the clock, in ns.
	Lag int64 `json:"lag,omitempty"`
}

// Clock ties the monotonic clock to the wall clock.
type Clock struct {
	// In ns since 1970, at the event's Time.
	Wall int64 `json:"wall"`
}

// Lost reports dropped events.
type Lost struct {
	// "probe", "nri", "relay", or "recording" (slow recorder).
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Events since the last Lost of this reason.
	Count uint64 `json:"count"`
	// The process exited too early; otherwise cniscope was late.
	Gone bool `json:"gone,omitempty"`
	// The root of the plugin's tree; empty if any call may be affected.
	Process Process `json:"process,omitempty"`
}

// OfProcesses reports whether process events may be lost; NRI and the relay report sandboxes.
func (l *Lost) OfProcesses() bool { return l.Source != "nri" && l.Source != "relay" }

// Probe is the feature of the source that follows processes. Without it no process is followed any more.
const Probe = "probe"

// Degraded reports once that a feature is unavailable.
type Degraded struct {
	Feature  string `json:"feature"`
	Reason   string `json:"reason"`
	Restored bool   `json:"restored,omitempty"`
}

// Origin reports how processes are observed.
type Origin struct {
	// "bpf"; or "bpf-commands", "connector", "etw" or "snapshots", which do not see system calls.
	Source string `json:"source"`
	// Lifetime (ns) below which processes may be missed; 0 if none are.
	Resolution int64 `json:"resolution,omitempty"`
}

func (*Origin) Doer() Process   { return "" }
func (*Tick) Doer() Process     { return "" }
func (*Clock) Doer() Process    { return "" }
func (*Lost) Doer() Process     { return "" }
func (*Degraded) Doer() Process { return "" }
