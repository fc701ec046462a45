package show

import (
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

// Limits are what calls may take at most, for whoever gates a change on them.
type Limits struct {
	// Call and Command are how long a call and one command may take; 0 is no limit.
	Call, Command time.Duration
	// Commands is how many commands a call may run, and Failed how many calls may fail; nil
	// is no limit.
	Commands, Failed *int
}

// Set tells whether there is any limit.
func (l Limits) Set() bool {
	return l.Call > 0 || l.Command > 0 || l.Commands != nil || l.Failed != nil
}

// Crossing is a limit that a call crossed.
type Crossing struct {
	Pod string
	// Call is its name and interface, "CNI ADD eth0"; Trace its trace id.
	Call  string
	Trace string
	// Limit is the name of the option; By says what crossed it, in words.
	Limit string
	By    string
}

// String says which call, by what.
func (c Crossing) String() string {
	return fmt.Sprintf("%s  %s %s (--%s)", c.Pod, c.Call, c.By, c.Limit)
}

// Check is what came of comparing calls with limits.
type Check struct {
	Calls int
	// Partial counts calls of which not everything was seen: they may cross a limit unseen.
	Partial int
	// Crossed are the first CrossedMost that were found, Crossings is how many there are.
	Crossed   []Crossing
	Crossings int
}

// CrossedMost is how many crossed limits are said: a log is read by a person.
const CrossedMost = 100

func (c *Check) cross(all []Crossing) {
	c.Crossings += len(all)
	c.Crossed = append(c.Crossed, all[:min(len(all), CrossedMost-len(c.Crossed))]...)
}

// Check compares every call. Teardown counts as setup does.
func (l Limits) Check(operations iter.Seq[*tracepb.ResourceSpans]) Check {
	checked := Check{Crossed: []Crossing{}}
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
			if failures++; len(failed) < CrossedMost {
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

// crossed is what one call crosses by itself.
func (l Limits) crossed(call *node) (all []Crossing) {
	if l.Call > 0 && call.took() > l.Call {
		by := fmt.Sprintf("took %s, more than %s", text.Round(call.took()), l.Call)
		if why := call.verdict(); why != "" {
			by += ": " + why
		}
		all = append(all, crossing(call, "max-call", by))
	}
	if ran, most := commands(call); l.Commands != nil && ran > *l.Commands {
		by := fmt.Sprintf("ran %s, more than %d", plural(ran, "command"), *l.Commands)
		if most != "" {
			by += ": " + most
		}
		all = append(all, crossing(call, "max-commands", by))
	}
	if l.Command > 0 {
		call.walk(func(n *node) {
			if n.kind() == attr.KindCommand && n.took() > l.Command {
				all = append(all, crossing(call, "max-command", fmt.Sprintf("ran %s for %s, more than %s", n.Name, text.Round(n.took()), l.Command)))
			}
		})
	}
	return all
}

// wants tells whether a call crosses a limit that is not about all of them.
func (l Limits) wants(call *node) bool { return l.Set() && len(l.crossed(call)) > 0 }

func crossing(call *node, limit, by string) Crossing {
	return Crossing{Pod: pod(call), Call: what(call), Trace: hex.EncodeToString(call.TraceId), Limit: limit, By: by}
}

// commands counts what a call ran, and says what it ran most: "iptables 40 times". Where
// spans are missing, the call itself says how many there were.
func commands(call *node) (ran int, most string) {
	counts := map[string]int{}
	call.walk(func(n *node) {
		if n.kind() == attr.KindCommand {
			ran++
			counts[n.Name]++
			if counts[n.Name] > counts[most] {
				most = n.Name
			}
		}
	})
	if most != "" {
		most = most + " " + plural(counts[most], "time")
	}
	return max(ran, int(call.number(attr.CommandsKey))), most
}

// Filter says which operations somebody wants to see. The zero value is all of them.
type Filter struct {
	// Pod is NAMESPACE/NAME, or NAME; empty for every pod.
	Pod string
	// Problems leaves only what was slow, failed, partly unseen, or beyond Limits.
	Problems bool
	Limits   *Limits
}

// Wants tells whether an operation, with its calls, is one of them.
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
