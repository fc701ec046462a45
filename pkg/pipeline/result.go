package pipeline

import (
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Result is what events brought to light: *Judged is an operation that is over. All others are marks, whose spans are
// about an operation that is not over yet, or that was over before: *Hung, *Connected, *After and *Outage.
type Result interface {
	// Drawn returns the result as spans; the zero value for an operation that is not kept.
	Drawn() trace.Trace
}

// Judged is an operation that is over.
type Judged struct {
	Operation *model.Operation
	Judgement *judge.Judgement
	// Trace is the zero value unless the operation is kept: no attribute is built
	// before that is decided.
	trace.Trace
	// Whole is all spans of an operation that was slow or failed, if Pipeline.Whole is set.
	Whole trace.Trace
}

// Hung is a call in progress that takes too long.
type Hung struct {
	model.Flight
	trace.Trace
}

// Connected is a pod's first connection after its setup, if the setup was kept.
type Connected struct {
	model.Connected
	trace.Trace
}

// After is what an agent did for a pod behind its ADD, if that was kept.
type After struct {
	model.After
	// Says is why the pod waited for that; empty if it took no time.
	Says string
	trace.Trace
}

// Outage is a time in which the node's network was not ready.
type Outage struct {
	model.Outage
	trace.Trace
}
