package judge

import (
	"cmp"
	"fmt"
	"iter"
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
	from := o.Start
	for l, to := range until(o) {
		spent[l.What] += time.Duration(to - from)
		last[l.What] = l.Text
		if spent[l.What] > a.Time || l.What == a.What {
			a = Awaited{What: l.What, Time: spent[l.What]}
		}
		from = to
	}
	if a.What != "" {
		a.Says = text.Round(a.Time).String() + " of " + text.Round(time.Duration(o.End-o.Start)).String() + ": " + last[a.What]
	}
	return a
}

// until gives each lack and its end.
func until(o model.Outage) iter.Seq2[model.Lack, int64] {
	return func(yield func(model.Lack, int64) bool) {
		for i, l := range o.Lacks {
			to := o.End
			if i+1 < len(o.Lacks) {
				to = o.Lacks[i+1].At
			}
			if !yield(l, to) {
				return
			}
		}
	}
}

// Brought is a node's start: stages that follow one another, and a sentence about the longest.
type Brought struct {
	Stages []Stage
	Says   string
	Cause  string
	Took   time.Duration
}

// Stage is a part of that.
type Stage struct {
	Name     string
	From, To int64
}

var stageOf = map[event.Lack]string{
	event.LackRuntime: "wait for CRI", event.LackFolder: "wait for CNI directory",
	event.LackConfiguration: "wait for CNI configuration", event.LackPlugin: "wait for CNI plugin",
	event.LackStatus: "wait for STATUS", model.LackPod: "wait for pod", "": "wait for network",
}

// BringUp evaluates a node's start.
func BringUp(up model.BringUp) (b Brought) {
	asked := cmp.Or(up.First.Asked, up.First.From)
	at := up.From
	var longest int64
	stage := func(name, cause string, to int64, says string) {
		if to = min(to, up.First.To); to <= at {
			return
		}
		b.Stages = append(b.Stages, Stage{Name: name, From: at, To: to})
		if to-at > longest {
			longest, b.Cause, b.Says = to-at, cause, says
		}
		at = to
	}
	stage("boot", "boot", up.Since, "until the runtime was started")
	stage("runtime start", "runtime", min(up.Start, asked), "until the runtime answered cniscope")
	for l, to := range until(up.Outage) {
		stage(stageOf[l.What], string(l.What), min(to, asked), l.Text)
	}
	stage(stageOf[""], string(event.LackRuntime), min(up.End, asked), "until the runtime found the network ready")
	pod := up.First.Pod.Namespace + "/" + up.First.Pod.Name
	failed := ""
	if up.Failed > 0 {
		failed = fmt.Sprintf(", after %d that failed", up.Failed)
	}
	stage("wait for pod", "pod", asked, "until pod "+pod+" was started"+failed)
	stage("first pod", "first_pod", up.First.To, "the start of pod "+pod+failed)
	b.Took = time.Duration(up.First.To - up.From)
	b.Says = fmt.Sprintf("%s of %s: %s", text.Round(time.Duration(longest)), text.Round(b.Took), b.Says)
	return b
}
