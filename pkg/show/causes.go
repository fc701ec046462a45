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

// Spent is the time of all calls for one cause or part.
type Spent struct {
	// The judge's cause; empty for a Part.
	Cause string `json:"cause,omitempty"`
	// A part that was not slow, named as in cniscope.time.*_ms.
	Part  string  `json:"part,omitempty"`
	Name  string  `json:"name"`
	Calls int     `json:"calls"`
	Time  float64 `json:"time_ms"`
	Share float64 `json:"share"`
	// The worst call's remedy, or a general remedy.
	Remedy string   `json:"remedy,omitempty"`
	Worst  *Example `json:"worst,omitempty"`
}

// Most is Worst's share.
func (s Spent) Most() string {
	if s.Calls == 1 {
		return "all"
	}
	return "most"
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

// causesMost bounds the causes; less than half as many exist.
const causesMost = 100

type account struct {
	spent map[string]*Spent // by cause or part
	total float64
}

func newAccount() *account { return &account{spent: map[string]*Spent{}} }

func (a *account) add(call *node) {
	took, sum := milliseconds(call.extent()), 0.0
	a.total += took
	parts := call.parts()
	for _, ms := range parts {
		sum += ms
	}
	if sum == 0 {
		parts, sum = map[attribute.Key]float64{attr.TimeUnexplainedMSKey: took}, took
	}
	causes := call.causes(parts)
	times := map[Spent]float64{}
	for part, ms := range parts {
		ms *= took / max(sum, 1e-6) // scaled to the call's time
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
	for _, slow := range slowThings() {
		for _, kind := range slow.kinds {
			if n.number(slow.key) > 0 {
				blame(kind, kind.Cause())
			}
		}
	}
	if len(causes) > 0 || !n.is(attr.SlowKey) {
		return causes
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(parts)), func(a, b attribute.Key) int {
		return cmp.Compare(parts[a], parts[b])
	})
	cause := kindOf(most).Cause()
	if len(verdict.Parts) > 0 { // the verdict's kinds of parts are missing
		cause = verdict.Cause
	}
	causes[most] = cause
	return causes
}

func kindOf(part attribute.Key) judge.PartKind {
	for _, a := range judge.Accounts() {
		if a.Time(0).Key == part {
			return a.Kind
		}
	}
	return judge.Unexplained
}
