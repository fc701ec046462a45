package judge

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Awaited is what a network outage was mainly spent waiting for.
type Awaited struct {
	What event.Lack
	Says string
	Time time.Duration
}

// Outage evaluates an outage. The first lack counts from the beginning, since it is observed a moment later.
func Outage(o model.Outage) (a Awaited) {
	spent := map[event.Lack]time.Duration{}
	last := map[event.Lack]string{}
	for i, l := range o.Lacks {
		from, to := l.At, o.End
		if i == 0 {
			from = o.Start
		}
		if i+1 < len(o.Lacks) {
			to = o.Lacks[i+1].At
		}
		spent[l.What] += time.Duration(to - from)
		last[l.What] = l.Text
		if spent[l.What] > a.Time || l.What == a.What {
			a = Awaited{What: l.What, Time: spent[l.What]}
		}
	}
	if a.What != "" {
		a.Says = text.Round(a.Time).String() + " of " + text.Round(time.Duration(o.End-o.Start)).String() + ": " + last[a.What]
	}
	return a
}
