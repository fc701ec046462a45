// Package event is the closed vocabulary of what can be observed. Every source
// (the kernel probe, NRI, the CNI configuration folder, a recording) speaks it,
// and nothing behind the sources knows where an event came from.
//
// It holds types only, and names no Linux type: a process is an opaque key, a network namespace a string (a
// GUID on Windows), an exit code a uint32. What is in an event has been decoded, bounded and sanitised by its
// source: no raw argument, environment or configuration bytes, no control characters, no invalid UTF-8.
package event

// Event is one observation. The order of the events of one source is that of cause and effect;
// durations come from Time.
type Event struct {
	// Time is when it happened or ended, in nanoseconds of the node's monotonic clock.
	Time int64
	// Body is what happened.
	Body Body
}

// Body is what an event says: a pointer to one of the types in this package that Kinds lists.
type Body interface {
	// Doer returns the process that did it; empty for an event of the node, and for a sample.
	Doer() Process
}

// Sink receives the events of a source, in order. It may block: a source that must not be blocked
// puts a queue in front of it, and reports what the queue drops as Lost.
type Sink func(Event)

// Process identifies one process for as long as the node is up. It is opaque: two processes are the same if
// their keys are equal, and nothing else follows. A process may run several images, one after another.
type Process string

// Namespace is a network namespace.
type Namespace struct {
	// Key is unique for as long as the node is up, even after the namespace is gone.
	Key string `json:"key,omitempty"`
	// Label is what people know it by: on Linux its inode number, which may be reused.
	Label string `json:"label,omitempty"`
}

// TraceContext is the W3C trace context from an environment or the metadata of a request; empty if
// there was none.
type TraceContext struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// sourceKinds lists what sources report about themselves, by the names of the kinds.
var sourceKinds = map[string]Body{
	"clock":    &Clock{},
	"lost":     &Lost{},
	"degraded": &Degraded{},
	"tick":     &Tick{},
	"origin":   &Origin{},
}

// Tick reports that the source has delivered every event before its Time. Whatever waits for time to
// pass waits for ticks, never for a clock.
type Tick struct {
	// Lag is how far Time is behind the clock, in nanoseconds, while the source cannot keep up; else 0.
	Lag int64 `json:"lag,omitempty"`
}

// Clock ties the monotonic clock to the calendar.
type Clock struct {
	// Wall is the calendar time at the event's Time, in nanoseconds since 1970.
	Wall int64 `json:"wall"`
}

// Lost reports events that a source could not deliver.
type Lost struct {
	// Source is which one: "probe", "nri", "relay", or "recording" where whoever recorded
	// beside a running cniscope was too slow.
	Source string `json:"source"`
	// Reason is a short fixed phrase: "ring full", "process table full", …
	Reason string `json:"reason"`
	// Count is how many events were lost for this reason since the last Lost.
	Count uint64 `json:"count"`
	// Gone is true if nothing came too late to be read: whom they are about had ended before anybody could
	// look at it.
	Gone bool `json:"gone,omitempty"`
	// Process is the root of the plugin's tree that they belonged to; empty if unknown, which
	// affects everything that was open at the time.
	Process Process `json:"process,omitempty"`
}

// OfProcesses reports whether events of processes may be among those that were lost: NRI and the
// relay report on sandboxes only.
func (l *Lost) OfProcesses() bool { return l.Source != "nri" && l.Source != "relay" }

// Degraded reports, once, that a feature is not available on this node.
type Degraded struct {
	// Feature is its name: "nri", "kernel probe", "CNI configuration".
	Feature string `json:"feature"`
	// Reason is why, and what to do about it.
	Reason string `json:"reason"`
	// Restored is true if the feature, missing before, is available now.
	Restored bool `json:"restored,omitempty"`
}

// Origin reports by what means processes are observed from now on.
type Origin struct {
	// Source is "bpf"; or "bpf-commands", "connector", "etw" or "snapshots", where nothing of what processes ask of
	// the kernel is seen.
	Source string `json:"source"`
	// Resolution is how long a process has to live to be seen for certain, in nanoseconds; 0: any is seen.
	Resolution int64 `json:"resolution,omitempty"`
}

func (*Origin) Doer() Process   { return "" }
func (*Tick) Doer() Process     { return "" }
func (*Clock) Doer() Process    { return "" }
func (*Lost) Doer() Process     { return "" }
func (*Degraded) Doer() Process { return "" }
