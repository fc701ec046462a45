// Package event is the closed vocabulary of what can be observed. Every source
// (the kernel probe, NRI, the CNI configuration folder, a recording) speaks it,
// and nothing behind the sources knows where an event came from.
//
// It holds types only, and names no Linux type: a process is an opaque key, a
// network namespace a string (a GUID on Windows), an exit code a uint32. What is
// in an event has been decoded, bounded and sanitised by its source: no raw
// argument, environment or configuration bytes, no control characters, no
// invalid UTF-8.
package event

// Event is one observation. Its place in the stream gives causality among the
// events of one source; its Time gives durations.
type Event struct {
	// Time is when it happened, in nanoseconds of the node's monotonic clock.
	Time int64
	// Body says what happened.
	Body Body
}

// Body is what an event says: a pointer to one of the types in this package that Kinds lists.
type Body interface {
	// Doer returns the process that did it; empty for an event of the node, and for a sample.
	Doer() Process
}

// Sink takes the events of a source, in order. It may block; a source that must
// not be blocked puts a queue of its own in front and reports what it dropped
// as Lost.
type Sink func(Event)

// Process identifies one process (not one program: a process may run several
// images, one after another) for as long as the node is up. It is opaque: two
// processes are the same if their keys are equal, and nothing else follows.
type Process string

// Namespace is a network namespace.
type Namespace struct {
	// Key is unique while the node is up, also after the namespace is gone.
	Key string `json:"key,omitempty"`
	// Label is what people know it by: the inode number on Linux. May be reused.
	Label string `json:"label,omitempty"`
}

// TraceContext is a W3C trace context, as found in an environment or in the
// metadata of a request. Empty if there was none.
type TraceContext struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// sourceKinds are what a source says of itself, by the names of their kinds.
var sourceKinds = map[string]Body{
	"clock":    &Clock{},
	"lost":     &Lost{},
	"degraded": &Degraded{},
	"tick":     &Tick{},
}

// Tick says that every event of the source before its Time has been delivered.
// Whatever waits for time to pass waits for ticks, never for a clock.
type Tick struct {
	// Lag is how far its Time is behind the clock, in nanoseconds, where the source has more
	// to read than it gets done; else 0.
	Lag int64 `json:"lag,omitempty"`
}

// Clock ties the monotonic clock to the calendar.
type Clock struct {
	// Wall is the calendar time at the event's Time, in nanoseconds since 1970.
	Wall int64 `json:"wall"`
}

// Lost says that the source could not deliver something.
type Lost struct {
	// Source is who lost it: "probe", "nri", "relay", or "recording" where whoever recorded
	// beside a running cniscope was too slow.
	Source string `json:"source"`
	// Reason is a short fixed phrase: "ring full", "process table full", …
	Reason string `json:"reason"`
	// Count is how many events were lost for this reason since the last Lost.
	Count uint64 `json:"count"`
	// Process is the root of the plugin's tree they belonged to; empty if unknown,
	// and then everything that was open at the time is touched.
	Process Process `json:"process,omitempty"`
}

// OfProcesses tells whether events of processes may be among what was lost. NRI and the relay
// tell of sandboxes only.
func (l *Lost) OfProcesses() bool { return l.Source != "nri" && l.Source != "relay" }

// Degraded says that a feature cannot be had here, once, by name.
type Degraded struct {
	// Feature is what is missing: "nri", "kernel probe", "CNI configuration".
	Feature string `json:"feature"`
	// Reason is why, and what to do about it.
	Reason string `json:"reason"`
	// Restored says that the feature, missing before, is there now.
	Restored bool `json:"restored,omitempty"`
}

func (*Tick) Doer() Process     { return "" }
func (*Clock) Doer() Process    { return "" }
func (*Lost) Doer() Process     { return "" }
func (*Degraded) Doer() Process { return "" }
