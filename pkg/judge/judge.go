// Package judge decides what was slow or failed in an operation, where the time went, and whether to keep it. It is
// pure: same operation and options, same judgement.
//
// For each call, divide attributes every instant to one Part. Rules  recognize patterns in this evidence
// and return findings; the best become the call's Verdict.
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

// Options are the settings of a judgement.
type Options struct {
	Thresholds
	Sampling
}

// Judge judges an operation without a baseline.
func (o Options) Judge(op *model.Operation) *Judgement { return o.JudgeBy(nil, op) }

// JudgeBy also compares with the baseline and updates it, if there is a book and Baseline is set.
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
	j.Reasons, j.TraceState = o.reasons(op, j)
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
			c.Failure += commandThatFailed(c.Failed)
		}
	}
	switch {
	case c.Failure != "":
	case len(call.NeverRun) > 0:
		c.Failure = "plugin " + strings.Join(call.NeverRun, ", ") + " did not run"
	case call.Undone != 0 && call.Broken == nil && mute(call) != nil:
		c.Failed = mute(call)
		c.Failure = fmt.Sprintf("plugin %s exited 0, but no result was seen, and the runtime removed the network",
			c.Failed.Run.Plugin)
	case bare(call) != nil:
		c.Failed = bare(call)
		c.Failure = fmt.Sprintf("the result of plugin %s has no IP address, and the runtime removed the network",
			c.Failed.Run.Plugin)
	case call.Undone != 0:
		c.Failure = fmt.Sprintf("every plugin succeeded, but the runtime removed the network %s later, before the sandbox ran",
			text.Round(time.Duration(call.Undone-call.End)))
	case call.Broken != nil:
		c.Failure = "every plugin succeeded, but the sandbox did not start"
	}
	c.Unusual = c.Slow == 0 && c.Failure == "" && !call.Hung && j.Slower(call)
	e := divide(call, c)
	e.namespace, e.wall = op.Pod.Namespace, op.Wall-op.Mono
	if c.Verdict = e.verdict(); c.Verdict != nil {
		c.Verdict.say(j.compared(call))
	}
	return c
}
