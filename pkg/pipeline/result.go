package pipeline

import (
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Result is a result of the pipeline. *Judged is a finished operation. The others are marks about an unfinished or an
// earlier operation: *Hung, *Connected, *After and *Outage.
type Result interface {
	// Drawn returns the result as spans; the zero value for an operation that is not exported.
	Drawn() trace.Trace
}

// Judged is a finished operation.
type Judged struct {
	Operation *model.Operation
	Judgement *judge.Judgement
	// Trace is the zero value if the operation is not exported: attributes are built only after that decision.
	trace.Trace
	// Whole has all spans of a slow or failed operation, if Pipeline.Whole is set.
	Whole trace.Trace
}

// Hung is a call in progress that exceeds slow.hung.
type Hung struct {
	model.Flight
	trace.Trace
}

// Connected is a pod's first connection after its setup, if the setup was exported.
type Connected struct {
	model.Connected
	trace.Trace
}

// After is an agent's work for a pod after its ADD, if that was exported.
type After struct {
	model.After
	// Says is why the pod waited for it; empty if it did not.
	Says string
	trace.Trace
}

// Outage is a period in which the node's network was not ready.
type Outage struct {
	model.Outage
	trace.Trace
}
