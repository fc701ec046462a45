package control

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

// Result is the outcome of an operation.
type Result string

// Results of an operation.
const (
	// Ordinary means neither slow nor failed, Slow that an operation or part exceeded its threshold.
	Ordinary Result = "ordinary"
	Slow     Result = "slow"
	Failed   Result = "failed"
	// Hung means a call beyond its threshold that goes on; its end is a second line.
	Hung Result = "hung"
	// Late means a late first connection after an ADD, which has a line of its own; Duration is the time in between.
	Late Result = "late"
)

// Call names the CNI call, or the request to the runtime.
func (l Line) Call() string {
	if l.Command != strings.ToUpper(l.Command) {
		return l.Command
	}
	return strings.TrimSpace("CNI " + l.Command + " " + l.IfName)
}

// Line summarizes an operation. Of several calls, Command, IfName, Network and Plugin are of the failed, else a
// slow, else the longest one.
type Line struct {
	// Seq rises, also over restarts, with gaps.
	Seq uint64 `json:"seq"`
	// Time is the operation's end; for Hung, the line's.
	Time      time.Time     `json:"time"`
	Node      string        `json:"node,omitempty"`
	Namespace string        `json:"namespace,omitempty"`
	Pod       string        `json:"pod,omitempty"`
	PodUID    string        `json:"pod_uid,omitempty"`
	Sandbox   string        `json:"sandbox,omitempty"`
	Command   string        `json:"command"`
	IfName    string        `json:"ifname,omitempty"`
	Network   string        `json:"network,omitempty"`
	Plugin    string        `json:"plugin,omitempty"`
	Duration  time.Duration `json:"duration_ns"`
	Result    Result        `json:"result"`
	Cause     string        `json:"cause,omitempty"`
	Verdict   string        `json:"verdict,omitempty"`
	Remedy    string        `json:"remedy,omitempty"`
	// Certain means observed, not unconfirmed.
	Certain bool `json:"certain"`
	// Foreign marks a verdict about another namespace's object; users without access see Own.
	Foreign bool   `json:"foreign"`
	Own     string `json:"own,omitempty"`
	// TraceID is hex; empty without a trace.
	TraceID string `json:"trace_id,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Clean returns the line with printable texts, of at most names and sentences bytes.
func (l Line) Clean(names, sentences int) Line {
	for _, s := range []*string{
		&l.Node, &l.Namespace, &l.Pod, &l.PodUID, &l.Sandbox, &l.Command, &l.IfName, &l.Network, &l.Plugin, &l.Cause,
		&l.TraceID, (*string)(&l.Result),
	} {
		*s = text.Clean(*s, names)
	}
	for _, s := range []*string{&l.Verdict, &l.Own, &l.Remedy, &l.Error} {
		*s = text.Clean(*s, sentences)
	}
	return l
}

// Operations answers a Query, oldest first.
type Operations struct {
	Operations []Line `json:"operations"`
	Next       uint64 `json:"next"`
	// Since is the start of the history, complete from there.
	Since time.Time `json:"since"`
	Of    int       `json:"of"`
	// Forgotten counts those that the history dropped after Query.After.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

// Found is Operations read line by line, for they may be many.
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

// Query selects operations; zero selects all.
type Query struct {
	Namespace, Pod string
	Problems       bool
	Since          time.Time
	// After, if set, excludes lines up to this Seq.
	After uint64
	// Limit bounds lines: the oldest after After, or the newest if After is 0.
	Limit int
	Wait  time.Duration
}

// MaxWait bounds Query.Wait.
const MaxWait = time.Minute

// MaxRecord bounds a read-only recording.
const MaxRecord = 10 * time.Minute
