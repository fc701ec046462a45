package control

import (
	"iter"
	"slices"
	"time"
)

// Result is the outcome of an operation.
type Result string

// Results of an operation.
const (
	// Ordinary means that nothing was slow or failed, Slow that the operation or a part of it exceeded its threshold.
	Ordinary Result = "ordinary"
	Slow     Result = "slow"
	Failed   Result = "failed"
	// Hung means that a call exceeds its threshold and goes on. Its end is a second line.
	Hung Result = "hung"
)

// Line summarizes one operation. Of several calls, Command, IfName, Network and Plugin describe the failed one, else a
// slow one, else the longest.
type Line struct {
	// Seq rises, also over restarts; numbers may be missing.
	Seq uint64 `json:"seq"`
	// Time is the end of the operation; for Hung, of the line.
	Time      time.Time `json:"time"`
	Node      string    `json:"node,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	PodUID    string    `json:"pod_uid,omitempty"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Command   string    `json:"command"`
	IfName    string    `json:"ifname,omitempty"`
	Network   string    `json:"network,omitempty"`
	Plugin    string    `json:"plugin,omitempty"`
	// Duration is that of the call; for Hung, the time so far.
	Duration time.Duration `json:"duration_ns"`
	Result   Result        `json:"result"`
	// Cause, Verdict and Remedy may be empty (docs/verdicts.md).
	Cause   string `json:"cause,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Certain means that the verdict was observed and is not unconfirmed.
	Certain bool `json:"certain"`
	// Foreign means that the verdict names an object of another namespace. Own is then the verdict for users who may
	// see only this one.
	Foreign bool   `json:"foreign"`
	Own     string `json:"own,omitempty"`
	// TraceID is in hex; empty without a trace.
	TraceID string `json:"trace_id,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Operations is the answer to a Query, oldest operation first.
type Operations struct {
	Operations []Line `json:"operations"`
	// Next is Query.After for the operations that follow.
	Next uint64 `json:"next"`
	// Since is the start of the history: all operations that ended later are in it.
	Since time.Time `json:"since"`
	// Of also counts operations that Query.Problems and Query.Limit exclude.
	Of int `json:"of"`
	// Forgotten counts operations after Query.After that the history dropped.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

// Found is an Operations whose lines are read one by one, since they can be many.
type Found struct {
	Lines     iter.Seq[Line]
	Next      uint64
	Since     time.Time
	Of        int
	Forgotten uint64
}

// Collect returns the complete answer.
func (f Found) Collect() Operations {
	all := Operations{Operations: []Line{}, Next: f.Next, Since: f.Since, Of: f.Of, Forgotten: f.Forgotten}
	if f.Lines != nil {
		all.Operations = slices.AppendSeq(all.Operations, f.Lines)
	}
	return all
}

// Query selects operations. The zero value selects all.
type Query struct {
	Namespace, Pod string
	Problems       bool
	Since          time.Time
	// After, if set, excludes lines up to this Seq.
	After uint64
	// Limit, if set, bounds the lines: the oldest after After, or the newest if After is 0.
	Limit int
	// Wait is how long to wait for a line.
	Wait time.Duration
}

// MaxWait bounds Query.Wait.
const MaxWait = time.Minute

// RecordQuery describes a recording.
type RecordQuery struct {
	// For is the duration, up to MaxRecord.
	For time.Duration
	// Namespace and Pod name the pod of interest. The recording has the whole node: another process may hold a lock
	// that the pod waits for.
	Namespace, Pod string
}

// MaxRecord bounds a recording over the read-only socket.
const MaxRecord = 10 * time.Minute
