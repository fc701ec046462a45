package pipeline

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Result is *Judged, an operation, or a mark: *Hung, *Wanted, *Awaited, *Connected, *After, *Started, *Outage or
// *BringUp.
type Result interface {
	// Drawn returns spans, zero if not exported.
	Drawn() trace.Trace
}

// Judged is a finished operation.
type Judged struct {
	Operation *model.Operation
	Judgement *judge.Judgement
	// Trace is zero if not exported.
	trace.Trace
	Whole trace.Trace
}

// Hung is a call beyond slow.hung.
type Hung struct {
	model.Flight
	// At is the report, in monotonic ns.
	At int64
	trace.Trace
}

// Wanted is a failed call that waits for a look (event.Look); Judged follows.
type Wanted struct {
	ContainerID string
	event.Want
}

// Drawn returns nothing.
func (*Wanted) Drawn() trace.Trace { return trace.Trace{} }

// Awaited is a pod without a first connection, where At is 0, or a late one that waits for a look (event.Look).
type Awaited struct{ model.Connected }

// Drawn returns nothing, because Connected may follow.
func (*Awaited) Drawn() trace.Trace { return trace.Trace{} }

// Connected is a first connection after an exported setup.
type Connected struct {
	model.Connected
	// Verdict is nil unless the connection was late, and looked at.
	Verdict *judge.Verdict
	trace.Trace
}

// After is an agent's work after an ADD.
type After struct {
	model.After
	Says string
	trace.Trace
}

// Started is a sandbox's start.
type Started struct {
	model.Start
	judge.Started
	trace.Trace
}

// Outage is time without a ready node network.
type Outage struct {
	model.Outage
	trace.Trace
}

// BringUp is a node's start, until its first pod ran.
type BringUp struct {
	judge.Brought
	trace.Trace
}
