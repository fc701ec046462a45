package show

import (
	"fmt"
	"iter"
	"slices"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

// Limits are maxima of calls, for a CI gate.
type Limits struct {
	// Maximum durations, if not 0.
	Call, Command time.Duration
	// Maximum numbers of commands per call and of failed calls, if not nil.
	Commands, Failed *int
}

// Set reports whether there is any limit.
func (l Limits) Set() bool {
	return l.Call > 0 || l.Command > 0 || l.Commands != nil || l.Failed != nil
}

// Crossing is a limit that a call exceeds.
type Crossing struct {
	Pod string
	// "CNI ADD eth0".
	Call  string
	Limit string
	By    string
}

func (c Crossing) String() string {
	return fmt.Sprintf("%s  %s %s (--%s)", c.Pod, c.Call, c.By, c.Limit)
}

// Check is the result of checking limits.
type Check struct {
	Calls int
	// Partly observed calls, which may exceed a limit unseen.
	Partial int
	// Up to crossedMost of Crossings.
	Crossed   []Crossing
	Crossings int
}

// crossedMost bounds listed crossings.
const crossedMost = 100

func (c *Check) cross(all []Crossing) {
	c.Crossings += len(all)
	c.Crossed = append(c.Crossed, all[:min(len(all), crossedMost-len(c.Crossed))]...)
}

// Check returns what exceeds the limits.
func (l Limits) Check(operations iter.Seq[*tracepb.ResourceSpans]) Check {
	checked := Check{}
	var failed []Crossing
	failures := 0
	for rs := range operations {
		for _, call := range calls(rs) {
			checked.Calls++
			checked.Partial += one(call.is(attr.PartialKey) || call.is(attr.ReducedKey))
			checked.cross(l.crossed(call))
			if !call.failed() {
				continue
			}
			if failures++; len(failed) < crossedMost {
				failed = append(failed, crossing(call, "max-failed", "failed: "+call.verdict()))
			}
		}
	}
	if l.Failed != nil && failures > *l.Failed {
		checked.cross(failed)
		checked.Crossings += failures - len(failed)
	}
	return checked
}

func (l Limits) crossed(call *node) (all []Crossing) {
	if l.Call > 0 && call.took() > l.Call {
		by := fmt.Sprintf("took %s, more than %s", text.Round(call.took()), l.Call)
		if why := call.verdict(); why != "" {
			by += "; " + why
		}
		all = append(all, crossing(call, "max-call", by))
	}
	if ran, most := commands(call); l.Commands != nil && ran > *l.Commands {
		by := fmt.Sprintf("ran %s, more than %d", text.Count(ran, "command"), *l.Commands)
		if most != "" {
			by += ": " + most
		}
		all = append(all, crossing(call, "max-commands", by))
	}
	if l.Command > 0 {
		call.walk(func(n *node) {
			if n.kind() == attr.KindCommand && n.longest() > l.Command {
				by := fmt.Sprintf("ran %s for %s, more than %s", n.Name, text.Round(n.longest()), l.Command)
				all = append(all, crossing(call, "max-command", by))
			}
		})
	}
	return all
}

func (l Limits) wants(call *node) bool { return l.Set() && len(l.crossed(call)) > 0 }

func crossing(call *node, limit, by string) Crossing {
	return Crossing{Pod: pod(call), Call: what(call), Limit: limit, By: by}
}

// commands also names the most frequent one: "iptables 40 times".
func commands(call *node) (ran int, most string) {
	counts := map[string]int{}
	call.walk(func(n *node) {
		if n.kind() == attr.KindCommand {
			ran += n.count
			counts[n.Name] += n.count
			if counts[n.Name] > counts[most] {
				most = n.Name
			}
		}
	})
	if most != "" {
		most = most + " " + text.Count(counts[most], "time")
	}
	return max(ran, int(call.number(attr.CommandsKey))), most
}

// Filter selects operations; its zero value all.
type Filter struct {
	// NAMESPACE/NAME or NAME, if set.
	Pod string
	// Slow, failed and partly observed calls, and those beyond Limits.
	Problems bool
	Limits   *Limits
}

// Wants reports whether any call matches.
func (f Filter) Wants(rs *tracepb.ResourceSpans) bool {
	for _, call := range calls(rs) {
		if f.Pod != "" && f.Pod != call.text(semconv.K8SPodNameKey) && f.Pod != pod(call) {
			continue
		}
		if !f.Problems || call.problem() || f.Limits != nil && f.Limits.wants(call) {
			return true
		}
	}
	return false
}

// Pods returns an operation's pods, NAMESPACE/NAME.
func Pods(rs *tracepb.ResourceSpans) (names []string) {
	for _, call := range calls(rs) {
		if name := pod(call); name != noPod && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
