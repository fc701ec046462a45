package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Afterwards describes an agent's work behind an ADD.
type Afterwards struct {
	*Judgement
	// Says is why the network was not ready when ADD returned; empty if nothing took long or failed.
	Says  string
	Cause Cause
}

// After judges what an agent ran for a pod whose ADD had returned.
func (o Options) After(a model.After) Afterwards {
	j := Afterwards{Judgement: &Judgement{Slow: map[*model.Image]time.Duration{}}}
	im := a.Image
	im.Walk(func(below *model.Image) {
		if limit := o.threshold(below); limit > 0 && time.Duration(below.End-below.Start) > limit {
			j.Slow[below] = limit
		}
	})
	if len(j.Slow) == 0 && !im.Failed() {
		return j
	}
	j.Cause = CauseCommand
	if isPowerShell(im.Name) {
		j.Cause = CausePowerShell
	}
	how := "took " + text.Round(time.Duration(im.End-im.Start)).String()
	switch {
	case !im.Ended:
		how += " and was not over"
	case im.Failed():
		how += " and failed: " + Describe(im)
	}
	by := "an agent"
	if im.By != nil && im.By.Name != "" {
		by = im.By.Name
	}
	j.Says = fmt.Sprintf("%s ran %s for the pod until %s after its %s returned; the run %s",
		by, im.Name, text.Round(time.Duration(im.End-a.End)), a.Command, how)
	return j
}

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
