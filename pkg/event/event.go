// Package event is the closed vocabulary of observations. Every source (the kernel probe, NRI, the CNI configuration
// directory, a recording) uses it, and consumers do not know where an event came from.
//
// It holds only types, none of them specific to Linux: a process is an opaque key, a network namespace a string (a
// GUID on Windows), an exit code a uint32. The source decodes, bounds and sanitizes what it puts into an event: no
// raw arguments, environment or configuration bytes, no control characters, no invalid UTF-8.
package event

// Event is one observation. The events of one source are in the order of cause and effect; durations come from Time.
type Event struct {
	// Time is when it happened or ended, in ns of the node's monotonic clock.
	Time int64
	Body Body
}

// Body is a pointer to one of the types in this package that Kinds lists.
type Body interface {
	// Doer returns the process that did it; empty for an event of the node and for a sample.
	Doer() Process
}

// Sink receives the events of a source, in order. It may block: a source that must not block needs a queue, and
// reports drops as Lost.
type Sink func(Event)

// Process is an opaque key that identifies a process until the node restarts. A process may run several images, one
// after another.
type Process string

// Namespace is a network namespace.
type Namespace struct {
	// Key is unique until the node restarts, even after the namespace is gone.
	Key string `json:"key,omitempty"`
	// Label is for people: on Linux the inode number, which may be reused.
	Label string `json:"label,omitempty"`
}

// TraceContext is the W3C trace context of an environment or of a request's metadata; empty if there was none.
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

// Tick reports that the source has delivered every event before its Time. Timeouts downstream run on ticks, never on
// a clock.
type Tick struct {
	// Lag is by how many ns Time is behind the clock if the source cannot keep up; else 0.
	Lag int64 `json:"lag,omitempty"`
}

// Clock ties the monotonic clock to the wall clock.
type Clock struct {
	// Wall is the wall clock at the event's Time, in ns since 1970.
	Wall int64 `json:"wall"`
}

// Lost reports events that a source could not deliver.
type Lost struct {
	// Source is "probe", "nri", "relay", or "recording" for a recorder that is too slow for a running cniscope.
	Source string `json:"source"`
	// Reason is a short fixed phrase: "ring full", "process table full", …
	Reason string `json:"reason"`
	// Count is the number of events since the last Lost of this reason.
	Count uint64 `json:"count"`
	// Gone is true if cniscope was not late: the process had exited before it could be examined.
	Gone bool `json:"gone,omitempty"`
	// Process is the root of the plugin's tree; empty if unknown, which affects every call in progress.
	Process Process `json:"process,omitempty"`
}

// OfProcesses reports whether process events may be lost: NRI and the relay report only sandboxes.
func (l *Lost) OfProcesses() bool { return l.Source != "nri" && l.Source != "relay" }

// Degraded reports, once, that a feature is unavailable on this node.
type Degraded struct {
	// Feature is its name: "nri", "kernel probe", "CNI configuration".
	Feature string `json:"feature"`
	// Reason is the cause and the remedy.
	Reason string `json:"reason"`
	// Restored is true if an unavailable feature is available again.
	Restored bool `json:"restored,omitempty"`
}

// Origin reports how processes are observed from now on.
type Origin struct {
	// Source is "bpf"; or "bpf-commands", "connector", "etw" or "snapshots", which do not see system calls.
	Source string `json:"source"`
	// Resolution is the lifetime in ns below which the source may miss a process; 0: it misses none.
	Resolution int64 `json:"resolution,omitempty"`
}

func (*Origin) Doer() Process   { return "" }
func (*Tick) Doer() Process     { return "" }
func (*Clock) Doer() Process    { return "" }
func (*Lost) Doer() Process     { return "" }
func (*Degraded) Doer() Process { return "" }
