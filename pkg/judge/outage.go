package judge

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Awaited is what an outage of the node's network was spent waiting for, most of the time.
type Awaited struct {
	What event.Lack
	Says string
	Time time.Duration
}

// Outage says what an outage was spent waiting for; nothing where nobody looked. The first lack counts from the
// beginning of the outage on, since it is looked for a moment later.
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
