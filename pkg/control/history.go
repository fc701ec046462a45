package control

import (
	"iter"
	"slices"
	"time"
)

// Result is how an operation came out.
type Result string

// The results.
const (
	// Ordinary: nothing of it took longer than its threshold, and nothing failed.
	Ordinary Result = "ordinary"
	// Slow: the operation, or a part of it, took longer than its threshold.
	Slow Result = "slow"
	// Failed: a call of it failed.
	Failed Result = "failed"
	// Hung: a call of it has been under way for too long, and is not over yet. The operation has a line
	// of its own when it is over.
	Hung Result = "hung"
)

// Line is what a node remembers of one operation: the setup or the teardown of one pod's network.
//
// An operation may have several calls (loopback, several networks). Command, IfName, Network and Plugin
// are those of the call that tells most about it: the one that failed, else a slow one, else the longest.
type Line struct {
	// Seq numbers the lines. It rises, also from one run of cniscope to the next, and may leave numbers out.
	Seq uint64 `json:"seq"`
	// Time is when the operation ended; when the line was written, if it hangs.
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
	// Duration is how long that call took; how long it has been under way, if it hangs.
	Duration time.Duration `json:"duration_ns"`
	Result   Result        `json:"result"`
	// Cause, Verdict and Remedy are the judge's (docs/verdicts.md). Empty for an ordinary operation, and
	// where nothing is known.
	Cause   string `json:"cause,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Certain says that the verdict tells what was seen, and names no mere candidate.
	Certain bool `json:"certain"`
	// Foreign says that the verdict names something of another namespace's pods. Own then is the verdict for
	// whoever may see this namespace only; empty if Verdict is.
	Foreign bool   `json:"foreign"`
	Own     string `json:"own,omitempty"`
	// TraceID is the operation's trace, in hex. Empty for an operation that has none.
	TraceID string `json:"trace_id,omitempty"`
	// Error is what failed, as the plugin said it.
	Error string `json:"error,omitempty"`
}

// Operations is what a node answers of the operations that it remembers, the earliest first.
type Operations struct {
	Operations []Line `json:"operations"`
	// Next is the After of the next question, for what comes after these.
	Next uint64 `json:"next"`
	// Since is when the memory begins: all operations that ended later are remembered. It is when cniscope
	// started, or when the latest forgotten operation ended.
	Since time.Time `json:"since"`
	// Of is how many operations there were, whatever Query.Problems and Query.Limit left out of them.
	Of int `json:"of"`
	// Forgotten is how many operations came after Query.After and are forgotten by now.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

// Found is what Operations is made of, where the lines are read one by one: they may be many.
type Found struct {
	Lines iter.Seq[Line]
	Next  uint64
	Since time.Time
	Of    int
	// Forgotten is as in Operations.
	Forgotten uint64
}

// Collect returns the answer as a whole.
func (f Found) Collect() Operations {
	all := Operations{Operations: []Line{}, Next: f.Next, Since: f.Since, Of: f.Of, Forgotten: f.Forgotten}
	if f.Lines != nil {
		all.Operations = slices.AppendSeq(all.Operations, f.Lines)
	}
	return all
}

// Query says which operations are asked for. The zero value asks for all.
type Query struct {
	// Namespace and Pod select one namespace's, or one pod's; empty: any.
	Namespace, Pod string
	// Problems leaves out the ordinary ones.
	Problems bool
	// Since leaves out what ended before; zero: nothing.
	Since time.Time
	// After leaves out this Seq and all before it; 0: none.
	After uint64
	// Limit is how many lines are wanted: the earliest after After, or if that is 0 the latest.
	// 0: as many as are remembered.
	Limit int
	// Wait is how long the answer may be held back until there is a line that is wanted, up to MaxWait.
	// 0: not at all.
	Wait time.Duration
}

// MaxWait is the longest Query.Wait.
const MaxWait = time.Minute

// RecordQuery says what is to be recorded.
type RecordQuery struct {
	// For is how long, up to MaxRecord.
	For time.Duration
	// Namespace and Pod say whom it is for. The recording has the whole node all the same: whoever holds the
	// lock that a pod waits for is another's process. show --pod draws the pod.
	Namespace, Pod string
}

// MaxRecord is the longest recording over the read-only socket.
const MaxRecord = 10 * time.Minute
