package metrics

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
)

const other = "other"

func (m *Metrics) plugin(name string) string { return m.pluginNames.Limit(name, other) }

// saying makes our phrase (source, reason, feature) a bounded label: recordings contain any.
func (m *Metrics) saying(phrase string) string { return m.sayings.Limit(word(phrase), other) }

func word(phrase string) string { return strings.ReplaceAll(phrase, " ", "_") }

func commandOf(command string) string {
	switch command {
	case "ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION":
		return command
	}
	return other
}

const (
	resultSuccess = "success"
	resultFailed  = "failed" // exit code, or a missing plugin of the chain
	resultKilled  = "killed" // by a signal, usually the runtime's timeout
	// resultUnfinished: in progress after 10 minutes.
	resultUnfinished = "unfinished"
	resultUnknown    = "unknown"
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

type outcome struct {
	name    string
	applies func(*judge.Call) bool
}

// outcomes lists the outcomes of a call; the first that applies counts.
func outcomes() []outcome {
	return []outcome{
		{"failed", func(c *judge.Call) bool { return c.Failure != "" }},
		{"slow", func(c *judge.Call) bool { return c.Slow > 0 }},
		{"slow_command", func(c *judge.Call) bool { return c.SlowCommands > 0 }},
		{"slow_agent", func(c *judge.Call) bool { return c.SlowAgents > 0 }},
		{"slow_lock", func(c *judge.Call) bool { return c.SlowLocks > 0 }},
		{"ordinary", func(*judge.Call) bool { return true }},
	}
}

// OutcomeOf returns the first outcome of a call that applies, such as slow_lock.
func OutcomeOf(verdict *judge.Call) string {
	all := outcomes()
	return all[slices.IndexFunc(all, func(o outcome) bool { return o.applies(verdict) })].name
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

// reason returns the first reason, so that counts sum up.
func reason(j *judge.Judgement) string {
	if len(j.Reasons) == 0 {
		return "none"
	}
	return string(j.Reasons[0])
}
