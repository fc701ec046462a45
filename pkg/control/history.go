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
	// Ordinary means that no part exceeded its threshold and nothing failed.
	Ordinary Result = "ordinary"
	// Slow means that the operation or a part of it exceeded its threshold.
	Slow Result = "slow"
	// Failed means that at least one call failed.
	Failed Result = "failed"
	// Hung means that a call exceeds the threshold and is still in progress. When the operation ends it gets a
	// second line.
	Hung Result = "hung"
)

// Line summarizes one operation: the setup or teardown of one pod's network. Of several calls, Command, IfName,
// Network and Plugin describe the failed one, else a slow one, else the longest.
type Line struct {
	// Seq rises from line to line, also over restarts; numbers may be missing.
	Seq uint64 `json:"seq"`
	// Time is the end of the operation; for Hung, the time of the line.
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
	// Cause, Verdict and Remedy are the judge's (docs/verdicts.md). They are empty for ordinary operations and
	// without a verdict.
	Cause   string `json:"cause,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Certain means that the verdict was observed and is not unconfirmed.
	Certain bool `json:"certain"`
	// Foreign means that the verdict names an object of another namespace. Own is then the verdict for users who
	// may see only this namespace; it is empty if Verdict is.
	Foreign bool   `json:"foreign"`
	Own     string `json:"own,omitempty"`
	// TraceID is in hex, and empty if the operation has no trace.
	TraceID string `json:"trace_id,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Operations is the answer to a Query, oldest operation first.
type Operations struct {
	Operations []Line `json:"operations"`
	// Next is Query.After for the operations that follow.
	Next uint64 `json:"next"`
	// Since is the start of the history: all operations that ended later are in it. It is the start of cniscope,
	// or the end of the last forgotten operation.
	Since time.Time `json:"since"`
	// Of counts the operations before Query.Problems and Query.Limit were applied.
	Of int `json:"of"`
	// Forgotten counts operations after Query.After that are no longer in the history.
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
	// Limit, if set, bounds the number of lines: the oldest after After, or the newest if After is 0.
	Limit int
	// Wait is how long to wait for the first line, up to MaxWait.
	Wait time.Duration
}

// MaxWait bounds Query.Wait.
const MaxWait = time.Minute

// RecordQuery describes a recording.
type RecordQuery struct {
	// For is the duration, up to MaxRecord.
	For time.Duration
	// Namespace and Pod name the pod of interest. The recording nevertheless has the whole node, because another
	// pod's process may hold the lock that this pod waits for.
	Namespace, Pod string
}

// MaxRecord bounds a recording over the read-only socket.
const MaxRecord = 10 * time.Minute
