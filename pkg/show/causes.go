package show

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/judge"
)

// Spent is the time of all calls that one thing took. Together all of them are all of the time.
type Spent struct {
	// Cause is the judge's word for what calls lost this time to that were slow, hung or failed.
	// Empty for a Part.
	Cause string `json:"cause,omitempty"`
	// Part is what the time went into where nothing was slow, as the last word but one of
	// cniscope.time.*_ms. Empty for a Cause.
	Part string `json:"part,omitempty"`
	// Name says it in a few words.
	Name string `json:"name"`
	// Calls is how many calls spent time so, Time how much in milliseconds, Share that of the time of all.
	Calls int     `json:"calls"`
	Time  float64 `json:"time_ms"`
	Share float64 `json:"share"`
	// Remedy is what to do about a cause: that of the worst call if it has one, else what helps in general.
	Remedy string `json:"remedy,omitempty"`
	// Worst is the call that lost most to a cause; nil for a Part.
	Worst *Example `json:"worst,omitempty"`
}

// Example is one call.
type Example struct {
	Pod     string  `json:"pod"`
	Call    string  `json:"call"`
	Trace   string  `json:"trace_id"`
	Time    float64 `json:"time_ms"`
	Verdict string  `json:"verdict"`
	head    head
}

// causesMost is how many causes and parts are told apart; this version knows less than half as many.
const causesMost = 100

// account sums up where the time of calls went.
type account struct {
	spent map[string]*Spent // by cause or part
	total float64           // ms
}

func newAccount() *account { return &account{spent: map[string]*Spent{}} }

// add divides the time of one call.
func (a *account) add(call *node) {
	took, sum := milliseconds(call.extent()), 0.0
	a.total += took
	parts := call.parts()
	for _, ms := range parts {
		sum += ms
	}
	if sum == 0 { // nothing is known of where it went
		parts, sum = map[attribute.Key]float64{attr.TimeUnexplainedMSKey: took}, took
	}
	causes := call.causes(parts)
	times := map[Spent]float64{}
	for part, ms := range parts {
		ms *= took / max(sum, 1e-6) // they are the call's time, but for rounding
		if cause := causes[part]; cause != "" {
			times[Spent{Cause: string(cause)}] += ms
		} else {
			times[Spent{Part: partName(part)}] += ms
		}
	}
	for what, ms := range times {
		a.spend(call, what, ms)
	}
}

func (a *account) spend(call *node, what Spent, ms float64) {
	key := what.Cause + " " + what.Part
	if a.spent[key] == nil && len(a.spent) >= causesMost {
		key, what = " "+other, Spent{Part: other}
	}
	s := a.spent[key]
	if s == nil {
		s = &what
		a.spent[key] = s
	}
	s.Calls++
	s.Time += ms
	if s.Cause != "" && (s.Worst == nil || ms > s.Worst.Time) {
		h := headOf(call)
		s.Worst = &Example{h.Pod, h.What, hex.EncodeToString(call.TraceId), ms, h.Verdict, h}
		s.Remedy = ""
		if call.text(attr.CauseKey) == s.Cause {
			s.Remedy = h.Remedy
		}
	}
}

// list returns what calls lost their time to, the most first; then what took the rest of it.
func (a *account) list() []Spent {
	all := make([]Spent, 0, len(a.spent))
	for _, key := range slices.Sorted(maps.Keys(a.spent)) {
		s := *a.spent[key]
		s.Time, s.Share = toNS(s.Time), toNS(s.Time/max(a.total, 1e-6))
		if s.Worst != nil {
			worst := *s.Worst
			worst.Time = toNS(worst.Time)
			s.Worst = &worst
		}
		if s.Name = s.Part; s.Cause != "" {
			about := judge.Cause(s.Cause).About()
			s.Name, s.Remedy = about.Name, cmp.Or(s.Remedy, about.Remedy)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(one(a.Cause == ""), one(b.Cause == "")), cmp.Compare(b.Time, a.Time))
	})
	return all
}

// parts returns the parts that a call's time is divided into, in milliseconds.
func (n *node) parts() map[attribute.Key]float64 {
	parts := map[attribute.Key]float64{}
	for key, value := range n.attrs {
		if ms := value.GetDoubleValue(); ms > 0 && strings.HasPrefix(string(key), attr.TimePrefix) {
			parts[key] = ms
		}
	}
	return parts
}

func partName(key attribute.Key) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(string(key), attr.TimePrefix), "_ms"), "_", " ")
}

// causes puts parts down to causes: those that the verdict accounts for, or that were slow themselves.
// All others were as they are in any call.
func (n *node) causes(parts map[attribute.Key]float64) map[attribute.Key]judge.Cause {
	causes := map[attribute.Key]judge.Cause{}
	verdict := judge.Cause(n.text(attr.CauseKey)).About()
	blame := func(kind judge.PartKind, cause judge.Cause) {
		for part := range parts {
			if kindOf(part) == kind {
				causes[part] = cause
			}
		}
	}
	for _, kind := range verdict.Parts {
		blame(kind, verdict.Cause)
	}
	if len(causes) > 0 {
		return causes
	}
	for _, slow := range []struct {
		key   attribute.Key
		kinds []judge.PartKind
	}{
		{attr.SlowCommandsKey, []judge.PartKind{judge.Commands}},
		{attr.SlowAgentsKey, []judge.PartKind{judge.Agents}},
		{attr.SlowLocksKey, []judge.PartKind{judge.Locks, judge.KernelLocks}},
	} {
		for _, kind := range slow.kinds {
			if n.number(slow.key) > 0 {
				blame(kind, kind.Cause())
			}
		}
	}
	if len(causes) > 0 || !n.is(attr.SlowKey) {
		return causes
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(parts)), func(a, b attribute.Key) int { return cmp.Compare(parts[a], parts[b]) })
	cause := kindOf(most).Cause()
	if len(verdict.Parts) > 0 { // an account of time that none of its kinds of parts has
		cause = verdict.Cause
	}
	causes[most] = cause
	return causes
}

// kindOf is the kind of parts whose time an attribute has; unexplained if it is none's.
func kindOf(part attribute.Key) judge.PartKind {
	for _, a := range judge.Accounts() {
		if a.Time(0).Key == part {
			return a.Kind
		}
	}
	return judge.Unexplained
}
