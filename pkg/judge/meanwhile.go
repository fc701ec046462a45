package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// The clause names what an agent did longest during a call, possibly for others. It is empty below worth of the
// time. Work that the agent also does without callers does not count.
func meanwhile(c *model.Connection) string {
	if c == nil || c.Work == nil {
		return ""
	}
	when := calledFor(c)
	for _, perhaps := range []bool{true, false} {
		most := longest(c.Work.Meanwhile, perhaps)
		if most == nil || float64(most.took()) < worth*float64(when.End-when.Start) {
			continue
		}
		return fmt.Sprintf("; during the call %s, %s, %s for %s",
			nameOf(c), most.whose(), most.says, text.Round(time.Duration(most.took())))
	}
	return ""
}

func (d *deeds) whose() string {
	switch {
	case d.most.Perhaps:
		return "serving this call or " + text.OneOf(d.others)
	case d.others == 1:
		return "serving another call"
	}
	return fmt.Sprintf("serving %d other calls", d.others)
}

type deeds struct {
	says   string
	when   []model.Interval
	most   model.Meanwhile
	others int // upper bound
}

func (d *deeds) connection() *model.Connection {
	if d.most.Fact == nil {
		return nil
	}
	c, _ := d.most.Fact.What.(*model.Connection)
	return c
}

func (d *deeds) took() int64 { return covered(slices.Clone(d.when)) }

// longest returns the longest deeds, either possibly for this call or for others; or nil.
func longest(all []model.Meanwhile, perhaps bool) (most *deeds) {
	var kinds []*deeds
	for _, m := range all {
		says := deed(m)
		if says == "" || m.Periodic || m.Perhaps != perhaps || len(m.Others) == 0 {
			continue
		}
		i := slices.IndexFunc(kinds, func(d *deeds) bool { return d.says == says })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, &deeds{says: says, most: m})
		}
		kinds[i].when, kinds[i].others = append(kinds[i].when, m.When), max(kinds[i].others, len(m.Others))
	}
	for _, d := range kinds {
		if c := d.connection(); c != nil && !heldUp(c, d.most.When) && sporadic(d.when, nil) {
			continue
		}
		if most == nil || d.took() > most.took() {
			most = d
		}
	}
	return most
}

// deed says what an agent did; empty for a part of that, or if it takes no time.
func deed(m model.Meanwhile) string {
	if m.Image != nil {
		return "ran " + m.Image.Name
	}
	switch w := m.Fact.What.(type) {
	case *model.Connection:
		if w.Exchange != nil && explainsShared(w, m.When) {
			return "waited for " + behindWhom(w, m.When)
		}
	case *model.Wait:
		if w.Path != "" {
			return "waited for file lock " + w.Path
		}
	}
	return ""
}

func explainsShared(c *model.Connection, when model.Interval) bool {
	at, asks := asksFor(c, when)
	return heldUp(c, when) || asks && at.End-at.Start > (when.End-when.Start)/2
}

// behindWhom names the last process behind an exchange: "switchd (stopped), through dbd".
func behindWhom(c *model.Connection, when model.Interval) string {
	last, by := furthest(c, when)
	said := peerName(last)
	if state := stateIn(last.Work, when); state != "" {
		said += " (" + state + ")"
	}
	if len(by) > 0 {
		said += ", through " + strings.Join(by, " and ")
	}
	return said
}

func furthest(c *model.Connection, when model.Interval) (last *model.Connection, by []string) {
	for c.Work != nil {
		next := longestExchange(c.Work, when)
		if next == nil {
			break
		}
		by, c = append(by, peerName(c)), next
	}
	return c, by
}

func longestExchange(w *model.Work, when model.Interval) *model.Connection {
	b := behindOf(w, when, hadAll)
	if b == nil {
		return nil
	}
	for c, times := range b.exchanges {
		if covered(times) > (when.End-when.Start)/2 {
			return c
		}
	}
	return nil
}
