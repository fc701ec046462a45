package pipeline

import (
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Result is *Judged, a finished operation, or a mark about another one: *Hung, *Connected, *After or *Outage.
type Result interface {
	// Drawn returns spans; the zero value if the operation is not exported.
	Drawn() trace.Trace
}

// Judged is a finished operation.
type Judged struct {
	Operation *model.Operation
	Judgement *judge.Judgement
	// Trace is zero if the operation is not exported.
	trace.Trace
	// Whole has all spans, if Pipeline.Whole is set.
	Whole trace.Trace
}

// Hung is a call in progress longer than slow.hung.
type Hung struct {
	model.Flight
	// At is when it was reported, in monotonic ns.
	At int64
	trace.Trace
}

// Connected is a pod's first connection after an exported setup.
type Connected struct {
	model.Connected
	trace.Trace
}

// After is an agent's work for a pod after its ADD.
type After struct {
	model.After
	// Says is why the pod waited; may be empty.
	Says string
	trace.Trace
}

// Outage is a period without a ready node network.
type Outage struct {
	model.Outage
	trace.Trace
}
