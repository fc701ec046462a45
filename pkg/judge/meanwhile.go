package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// meanwhile names what an agent did longest while a call waited for it, of what may as well have been done for
// other calls: "; meanwhile agentd ran clang, for this or 2 other calls". It is charged to none of them. Empty
// if that took less than worth of the time. What the agent does while nobody calls it, too, does not count.
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
		return fmt.Sprintf("; meanwhile %s %s for %s, %s", nameOf(c), most.says, text.Round(time.Duration(most.took())), most.whose())
	}
	return ""
}

// whose says for which calls the deeds may have been: "for this or 2 other calls".
func (d *deeds) whose() string {
	if d.most.Perhaps {
		return "for this or " + otherCalls(d.others)
	}
	return "for " + otherCalls(d.others)
}

func otherCalls(n int) string {
	if n == 1 {
		return "another call"
	}
	return fmt.Sprintf("%d other calls", n)
}

// deeds are those of one kind: "ran clang".
type deeds struct {
	says   string
	when   []model.Interval
	most   model.Meanwhile // the longest of them
	others int             // calls that they may be for as well, at most
}

func (d *deeds) took() int64 { return covered(slices.Clone(d.when)) }

// longest returns the deeds that took longest, of those that were perhaps for this call, or of those that were
// for others; nil if there are none.
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
		if most == nil || d.took() > most.took() {
			most = d
		}
	}
	return most
}

// deed says what an agent did; empty for what is only a part of that, or takes no time by itself.
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
			return "waited for lock " + w.Path
		}
	}
	return ""
}

// explainsShared is explains for an exchange of which nobody knows for whom it was.
func explainsShared(c *model.Connection, when model.Interval) bool {
	at, asks := asksFor(c, when)
	return heldUp(c, when) || asks && at.End-at.Start > (when.End-when.Start)/2
}

// behindWhom names the process that an agent waited for by an exchange, or the one behind it: "switchd (stopped), asked
// by dbd, by agentd". The askers are those of that exchange.
func behindWhom(c *model.Connection, when model.Interval, askers ...string) string {
	last, by := furthest(c, when)
	said := peerName(last)
	if state := stateIn(last.Work, when); state != "" {
		said += " (" + state + ")"
	}
	if by = append(by, askers...); len(by) > 0 {
		said += ", asked by " + strings.Join(by, ", by ")
	}
	return said
}

// furthest follows an exchange to the last process that was waited for most of an interval, and lists those that asked,
// the last one first.
func furthest(c *model.Connection, when model.Interval) (last *model.Connection, by []string) {
	for c.Work != nil {
		next := longestExchange(c.Work, when)
		if next == nil {
			break
		}
		by, c = slices.Insert(by, 0, peerName(c)), next
	}
	return c, by
}

// longestExchange returns the exchange that an agent waited for, on the way to its answer, for more than half of an
// interval; nil if there is none.
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
