package timeline

import (
	"github.com/cniscope/cniscope/pkg/event"
)

// Kind is what an operation does to a pod's network.
type Kind string

// The kinds of operations.
const (
	Setup    Kind = "setup"    // ADD
	Teardown Kind = "teardown" // DEL
	Other    Kind = "other"    // CHECK, GC, STATUS, VERSION
)

// KindOf returns the kind of operation a CNI command belongs to.
func KindOf(command string) Kind {
	switch command {
	case "ADD":
		return Setup
	case "DEL":
		return Teardown
	}
	return Other
}

// Key is what an operation is known by afterwards.
type Key struct {
	Kind        Kind
	ContainerID string
	// First is the first process of its first call, and Start when that began.
	First event.Process
	Start int64
	// Trace is what was above its first call.
	Trace event.TraceContext
}

// Before is an operation that another one follows on.
type Before struct {
	Key
	// Why is how: "setup of the sandbox", "earlier teardown", "previous attempt".
	Why string
}
