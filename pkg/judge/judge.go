// Package judge decides, when an operation is over, what was slow, what failed, where the time
// went, and whether the operation is worth keeping. It is pure: the same operation and the same
// options give the same judgement.
//
// For each call, divide charges every instant of its wall time to one Part. The rules (rule_*.go) look at
// this evidence, and each returns a finding if it recognises its pattern; the best findings become the call's
// Verdict, whose Cause is one of a few words. The Reasons of an operation say why it is kept or not.
package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Options are what a judgement depends on besides the operation.
type Options struct {
	Thresholds
	Sampling
}

// Judge judges one operation by itself.
func (o Options) Judge(op *model.Operation) *Judgement { return o.JudgeBy(nil, op) }

// JudgeBy judges one operation also by what is known of those before it, and learns from it. Without a book, or
// without Baseline, it does neither.
func (o Options) JudgeBy(known *baseline.Book, op *model.Operation) *Judgement {
	j := &Judgement{
		Calls:      map[*model.Call]*Call{},
		Slow:       map[*model.Image]time.Duration{},
		SlowAgents: map[*model.Connection]time.Duration{},
		SlowLocks:  map[*model.Wait]time.Duration{},
	}
	if known != nil && o.Baseline {
		o.compare(known, j, op)
	}
	for _, call := range op.Calls {
		j.Calls[call] = o.call(j, op, call)
	}
	j.Reasons = o.reasons(op, j)
	j.Keep = !slices.Contains(j.Reasons, Unsampled) && !slices.Contains(j.Reasons, NoSandbox)
	return j
}

func (o Options) call(j *Judgement, op *model.Operation, call *model.Call) *Call {
	c := &Call{Took: time.Duration(call.End - call.Start)}
	if o.Call > 0 && c.Took > o.Call {
		c.Slow = o.Call
	}
	for _, run := range call.Runs {
		o.mark(j, c, call, run)
		if Fails(run) {
			c.Failed = blame(run)
			c.Failure = Describe(c.Failed)
			if command := lastCommand(c.Failed); command != nil && command.Failed() {
				c.Failure += "; its last command: " + Describe(command)
			}
		}
	}
	if len(call.NeverRun) > 0 {
		never := strings.Join(call.NeverRun, ", ") + " never ran"
		c.Failure = strings.TrimPrefix(c.Failure+"; "+never, "; ")
	}
	if call.Undone != 0 && c.Failure == "" {
		c.Failure = fmt.Sprintf("every plugin succeeded, but the runtime removed the network %s later, before the sandbox ran",
			text.Round(time.Duration(call.Undone-call.End)))
	}
	c.Unusual = c.Slow == 0 && c.Failure == "" && !call.Hung && j.Slower(call)
	e := divide(call, c)
	e.namespace, e.wall = op.Pod.Namespace, op.Wall-op.Mono
	if c.Verdict = e.verdict(); c.Verdict != nil {
		c.Verdict.say(j.compared(call))
	}
	return c
}
