// Package judge decides, when an operation is over, what was slow, what failed, where
// the time went, and whether the operation is worth keeping. It is pure: the same
// operation and the same options give the same judgement.
package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// Reason is why an operation is kept or not.
type Reason string

// The reasons. Slow, Failed, Partial and Hung are also the keep rules.
const (
	Slow    Reason = "slow"
	Failed  Reason = "failed"
	Partial Reason = "partial"
	Hung    Reason = "hung"
	// Sampled: it is in the share of ordinary operations that is kept.
	Sampled Reason = "sampled"
	// Unsampled: its parent is not sampled, or it is not in the share.
	Unsampled Reason = "unsampled"
	// NoSandbox: STATUS and the like belong to no pod, and come every few seconds.
	NoSandbox Reason = "no sandbox"
)

// Options are thresholds and sampling.
type Options struct {
	// Command and Call are how long an external command and a call may take; 0 means
	// for ever.
	Command, Call time.Duration
	// Agent is how long a connection to another process may last, Lock one wait for a lock;
	// 0 means for ever.
	Agent, Lock time.Duration
	// Rules are asked before Command, in order; the first that matches counts.
	Rules []Rule
	// Ratio is the share of ordinary operations that is kept, 0 to 1.
	Ratio float64
	// Namespaces are asked before Ratio, in order; the first that matches counts.
	Namespaces []NamespaceRule
	// Annotations are globs (path.Match) on the namespaces in which Annotation counts.
	Annotations []string
	// PerSecond is how many operations are kept whole in any second; 0 is no limit. See
	// Limiter.
	PerSecond int
	// All keeps every operation of a sandbox, whatever else is said.
	All bool
	// Keep are the rules that keep an operation whatever Ratio says.
	Keep []Reason
}

// Rule gives some commands a threshold of their own.
type Rule struct {
	// Pattern is a glob (path.Match) on the called name or on the file's base name,
	// without regard to case.
	Pattern   string
	Threshold time.Duration
}

// Judgement is what the judge says of one operation.
type Judgement struct {
	Keep bool
	// Reduced: of the operation only its calls are kept (see Limiter).
	Reduced bool
	// Reasons why, sorted as the constants are.
	Reasons []Reason
	Calls   map[*timeline.Call]*Call
	// Slow are the commands that took longer than their threshold, which is the value.
	Slow map[*timeline.Image]time.Duration
	// SlowAgents and SlowLocks are the same of connections and of waits for locks.
	SlowAgents map[*timeline.Connection]time.Duration
	SlowLocks  map[*timeline.Wait]time.Duration
}

// Call is what the judge says of one call.
type Call struct {
	// Took is its wall time.
	Took time.Duration
	// Slow is the threshold it crossed; 0 if it crossed none.
	Slow time.Duration
	// SlowCommands is how many of its commands were slow; SlowAgents and SlowLocks are the
	// same of connections and of waits for locks.
	SlowCommands, SlowAgents, SlowLocks int
	// Failure says in words what failed; empty if nothing did.
	Failure string
	// Failed is the run it failed in, the innermost; nil if none of them did (one that
	// should have come never ran).
	Failed *timeline.Image
	// Verdict says why it took so long or failed; nil of an ordinary fast one.
	Verdict *Verdict
	// Parts is where its wall time went, largest first. They sum to Took exactly.
	Parts []Part
}

// Judge judges one operation.
func (o Options) Judge(op *timeline.Operation) *Judgement {
	j := &Judgement{
		Calls: map[*timeline.Call]*Call{},
		Slow:  map[*timeline.Image]time.Duration{},

		SlowAgents: map[*timeline.Connection]time.Duration{},
		SlowLocks:  map[*timeline.Wait]time.Duration{},
	}
	for _, call := range op.Calls {
		j.Calls[call] = o.call(j, call)
	}
	j.Reasons = o.reasons(op, j)
	j.Keep = !slices.Contains(j.Reasons, Unsampled) && !slices.Contains(j.Reasons, NoSandbox)
	return j
}

func (o Options) call(j *Judgement, call *timeline.Call) *Call {
	parts, ledger := account(call)
	c := &Call{Took: time.Duration(call.End - call.Start), Parts: parts}
	if o.Call > 0 && c.Took > o.Call {
		c.Slow = o.Call
	}
	for _, run := range call.Runs {
		o.slow(j, c, call, run)
		if Fails(run) {
			c.Failed = blame(run)
			c.Failure = Describe(c.Failed)
			if command := lastCommand(c.Failed); command != nil && command.Failed() {
				c.Failure += "; its last command: " + Describe(command)
			}
		}
	}
	if len(call.NeverRun) > 0 {
		never := strings.Join(call.NeverRun, ", ") + " never run"
		c.Failure = strings.TrimPrefix(c.Failure+"; "+never, "; ")
	}
	c.Verdict = verdict(call, c, ledger)
	return c
}

// blame follows a failure down to the delegate it came from: the last one, if that
// failed too.
func blame(run *timeline.Image) *timeline.Image {
	var last *timeline.Image
	for _, child := range run.Children {
		child.Walk(func(im *timeline.Image) {
			// A plugin that fails undoes its ADD by a DEL of its delegate.
			if im.Run != nil && im.Run.Command == run.Run.Command {
				last = im
			}
		})
	}
	if last != nil && Fails(last) {
		return last
	}
	return run
}

// lastCommand is the command that a run started last; nil if it ran none, or became it. When that one
// failed, the run most likely failed because of it.
func lastCommand(run *timeline.Image) *timeline.Image {
	if len(run.Children) == 0 {
		return nil
	}
	if last := run.Children[len(run.Children)-1]; last.Run == nil && last.Process != run.Process {
		return last
	}
	return nil
}

// reasons says why the operation is kept or not.
func (o Options) reasons(op *timeline.Operation, j *Judgement) (reasons []Reason) {
	if routine(op) {
		return []Reason{NoSandbox}
	}
	is := map[Reason]bool{Partial: len(op.Partial) > 0, Slow: len(j.Slow)+len(j.SlowAgents)+len(j.SlowLocks) > 0}
	sampled := false
	for _, call := range op.Calls {
		is[Slow] = is[Slow] || j.Calls[call].Slow > 0
		is[Hung] = is[Hung] || call.Hung
		is[Failed] = is[Failed] || j.Calls[call].Failure != ""
		sampled = sampled || !w3c.Parse(call.Trace).Unsampled()
	}
	for _, rule := range []Reason{Slow, Failed, Partial, Hung} {
		if is[rule] && slices.Contains(o.Keep, rule) {
			reasons = append(reasons, rule)
		}
	}
	switch {
	case len(reasons) > 0:
		return reasons
	case op.ContainerID == "":
		return []Reason{NoSandbox}
	case o.All, sampled && share(op.ContainerID) < o.ratio(op):
		return []Reason{Sampled}
	}
	return []Reason{Unsampled}
}

// routine is what a runtime asks again and again of no pod: it is counted, never kept.
func routine(op *timeline.Operation) bool {
	return !slices.ContainsFunc(op.Calls, func(c *timeline.Call) bool {
		return c.Command != "STATUS" && c.Command != "VERSION"
	})
}
