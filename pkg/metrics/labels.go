package metrics

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
)

// other is what one name too many is called.
const other = "other"

func (m *Metrics) plugin(name string) string { return m.pluginNames.Limit(name, other) }

// saying is one of our own fixed phrases as a label: sources, reasons, features. It is
// limited all the same, since a recording may say anything.
func (m *Metrics) saying(phrase string) string { return m.sayings.Limit(word(phrase), other) }

// word writes a phrase as people write label values: ring_full.
func word(phrase string) string { return strings.ReplaceAll(phrase, " ", "_") }

// commandOf is a CNI command; the specification has these.
func commandOf(command string) string {
	switch command {
	case "ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION":
		return command
	}
	return other
}

// What became of a call or a plugin.
const (
	resultSuccess = "success"
	resultFailed  = "failed" // it exited with a code, or a plugin of its chain never ran
	resultKilled  = "killed" // by a signal: the runtime's when its time is up
	// resultUnfinished: it was still in progress after 10 minutes; the time is what had
	// passed by then.
	resultUnfinished = "unfinished"
	resultUnknown    = "unknown" // resultUnknown: its end was not seen.
)

func imageResult(im *model.Image) string {
	switch {
	case !im.Ended:
		return resultUnfinished
	case im.Signal != "":
		return resultKilled
	case im.Code != 0:
		return resultFailed
	case im.Unseen:
		return resultUnknown
	}
	return resultSuccess
}

func callResult(call *model.Call, verdict *judge.Call) string {
	if verdict.Failed != nil {
		return imageResult(verdict.Failed)
	}
	if verdict.Failure != "" {
		return resultFailed
	}
	for _, result := range []string{resultUnfinished, resultUnknown} {
		if slices.ContainsFunc(call.Runs, func(run *model.Image) bool { return imageResult(run) == result }) {
			return result
		}
	}
	return resultSuccess
}

// Why a call is worth looking at.
const (
	outcomeFailed      = "failed"
	outcomeSlow        = "slow"
	outcomeSlowCommand = "slow_command"
	outcomeSlowAgent   = "slow_agent"
	outcomeSlowLock    = "slow_lock"
	outcomeOrdinary    = "ordinary"
)

// outcome is the first that applies, in the order in which the log has them.
func outcome(verdict *judge.Call) string {
	switch {
	case verdict.Failure != "":
		return outcomeFailed
	case verdict.Slow > 0:
		return outcomeSlow
	case verdict.SlowCommands > 0:
		return outcomeSlowCommand
	case verdict.SlowAgents > 0:
		return outcomeSlowAgent
	case verdict.SlowLocks > 0:
		return outcomeSlowLock
	}
	return outcomeOrdinary
}

func decision(j *judge.Judgement) string {
	switch {
	case !j.Keep:
		return "dropped"
	case j.Reduced:
		return "reduced"
	}
	return "kept"
}

// reason is the first of them, so that the counts sum to the operations.
func reason(j *judge.Judgement) string {
	if len(j.Reasons) == 0 {
		return "none"
	}
	return string(j.Reasons[0])
}
