package judge

import (
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/model"
)

func (t Thresholds) compare(known *baseline.Book, j *Judgement, op *model.Operation) {
	if len(op.Partial) > 0 {
		return // the unseen part may be what took the time
	}
	for _, call := range op.Calls {
		if call.Command != "ADD" && call.Command != "DEL" {
			continue
		}
		for _, run := range call.Runs {
			t.compareRun(known, j, op, call, run, run)
		}
	}
}

func (t Thresholds) compareRun(known *baseline.Book, j *Judgement, op *model.Operation, call *model.Call, run, im *model.Image) {
	if im.Run != nil {
		run = im
	}
	for _, child := range im.Children {
		t.compareRun(known, j, op, call, run, child)
	}
	if !teaches(run, im) {
		return
	}
	network, configuration := call.Network, call.Configured
	if read := run.Run.Configuration; read != nil && read.Network != "" && read.Network != network {
		network, configuration = read.Network, "" // called by a plugin such as Multus: in no file that we read
	}
	c := baseline.Call{
		Key:     baseline.Key{Network: network, Plugin: run.Run.Plugin, Command: run.Run.Command},
		Edition: baseline.Edition{Build: run.Build, Configuration: configuration},
		Took:    time.Duration(im.End - im.Start),
		At:      op.Wall + im.End - op.Mono,
	}
	if im.Run == nil {
		c.Program = im.Name
	}
	a := known.Take(c, t.Floor)
	if a.Above {
		if j.Usual == nil {
			j.Usual = map[*model.Image]baseline.Answer{}
		}
		j.Usual[im] = a
	}
	j.Findings = append(j.Findings, a.Findings...)
}

// teaches reports whether a duration is known and normal: failures may be instant, or wait for what never comes.
func teaches(run, im *model.Image) bool {
	return im.Ended && !im.Replaced && !im.Unseen && !im.Outlived && !im.InFlight && !im.Unidentified &&
		!run.Failed() && (im == run || !im.Failed())
}

// Slower reports whether any part of a call was slower than usual.
func (j *Judgement) Slower(call *model.Call) bool {
	_, a := j.mostUnusual(call)
	return a.Slower
}

func (j *Judgement) compared(call *model.Call) string {
	im, a := j.mostUnusual(call)
	if im == nil {
		return ""
	}
	name := im.Name
	if im.Run != nil {
		name = im.Run.Plugin + " " + im.Run.Command
	}
	return "; " + name + " took " + a.Usual.Compare(time.Duration(im.End-im.Start))
}

func (j *Judgement) mostUnusual(call *model.Call) (most *model.Image, is baseline.Answer) {
	if j.Usual == nil {
		return nil, is
	}
	times := func(im *model.Image, a baseline.Answer) float64 {
		return float64(im.End-im.Start) / float64(max(a.Usual.P99, 1))
	}
	for _, run := range call.Runs {
		run.Walk(func(im *model.Image) {
			a, above := j.Usual[im]
			if above && (most == nil || a.Slower && !is.Slower || a.Slower == is.Slower && times(im, a) > times(most, is)) {
				most, is = im, a
			}
		})
	}
	return most, is
}
