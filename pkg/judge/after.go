package judge

import (
	"fmt"
	"time"

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
