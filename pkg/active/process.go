package active

import (
	"path"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
)

// Process is a process of an open operation, or the stand-in for an agent's own work.
type Process struct {
	Op          *Operation
	Call        *model.Call
	Run         *model.Image
	Connections []*connection

	work *work
	// claim attributes an agent's next image, or its stand-in's next fact.
	claim   *claim
	up      *model.Image
	image   *model.Image
	halted  *model.Fact
	tries   []try
	answers []*event.Answer

	used, ran event.Usage // consumption before its image, and before its run
	latest    systemCall
}

// Leader returns a run's leader.
func Leader(op *Operation, call *model.Call, run *model.Image, used event.Usage) *Process {
	return &Process{Op: op, Call: call, Run: run, up: run, image: run, used: used, ran: used}
}

// standIn returns the stand-in for an agent's own work for p.
func (p *Process) standIn(im *model.Image, w *work) *Process {
	return &Process{Op: p.Op, Call: p.Call, Run: p.Run, up: im, image: im, work: w}
}

// Disconnect ends all connections.
func (p *Process) Disconnect(now int64) {
	for _, c := range p.Connections {
		c.disconnect(now)
	}
	p.Connections = nil
}

// Did applies an activity.
func (p *Process) Did(now int64, body event.Body) {
	switch b := body.(type) {
	case *event.Request:
		p.request(now, b)
	case *event.Answer:
		p.answer(b)
	case *event.Address:
		p.address(now, b)
	case *event.Enter:
		p.enter(b)
	case *event.Configuration:
		p.configuration(b)
	case *event.Result:
		p.Run.Run.Result = b // of any process of the run
	case *event.Missing:
		p.missing(now, b)
	case *event.Questions:
		p.Current().Tallies[model.FactQuery].Add(int(b.Count), b.Took)
	case *event.Cut:
		p.cut(b)
	case *event.Setting:
		p.plain(now, b.Start, b.Thread, &model.Setting{Setting: b}, "sysctls")
	case *event.Mount:
		p.plain(now, b.Start, b.Thread, &model.Mount{Mount: b}, "mounts")
	}
}

// Of returns the tree's process, or nil outside of open operations.
func Of(p *tree.Process) *Process {
	if p == nil {
		return nil
	}
	mine, _ := p.Kept.(*Process)
	return mine
}

// Child returns the state for a fork of p.
func (p *Process) Child() *Process {
	up := p.image
	if up == nil { // p is a subshell
		up = p.up
	}
	return &Process{Op: p.Op, Call: p.Call, Run: p.Run, up: up, work: p.work}
}

// Current returns the image of p, or its parent's for a subshell.
func (p *Process) Current() *model.Image {
	if p.image != nil {
		return p.image
	}
	return p.up
}

// Replace ends the image of p, unless p leads a run, which lasts as long as its process.
func (p *Process) Replace(now int64, used event.Usage) {
	if p.image != nil && p.image != p.Run {
		ended(p.image, now, p.used, used)
		p.image.Replaced = true
	}
}

// Runs starts an image; used is the earlier consumption.
func (p *Process) Runs(im *model.Image, used event.Usage) {
	p.Replace(im.Start, used)
	if cl := p.claim; cl != nil {
		im.Attribution, im.By = &cl.Attribution, cl.by
		cl.did(deed{image: im})
		p.claim = nil
	}
	im.Outlived = p.Run.Ended // forked earlier
	p.up.Children = append(p.up.Children, im)
	p.image, p.used = im, used
	if im.Run != nil { // children inherit it
		p.Run, p.up, p.ran = im, im, used
	}
}

// Exit ends p, and the run that it leads.
func (p *Process) Exit(now int64, e *event.Exit) {
	if e.Unseen {
		p.Op.Lacks("the end of a process was not seen")
	}
	if p.halted != nil {
		p.halted.When.End = max(p.halted.When.End, now)
	}
	if p.image != nil {
		exited(p.image, now, p.used, e)
	}
	if p.Run.Process != e.Process {
		return
	}
	if p.Run != p.image {
		exited(p.Run, now, p.ran, e)
	}
	p.Run.Walk(func(im *model.Image) {
		im.Outlived = im.Outlived || !im.Ended // so it does not keep a call open
	})
	if call := p.Op.callOf(p.Run); call != nil {
		call.End = max(call.End, now)
		p.Op.End = max(p.Op.End, now)
	}
}

// Room counts one more fact; without room it counts what in Call.Cut.
func (p *Process) Room(what string) bool {
	if p.Op.facts < p.Op.limits.Facts {
		p.Op.facts++
		return true
	}
	p.miss(what, 1)
	p.Op.Lacks("more " + what + " than the limit")
	return false
}

func (p *Process) miss(what string, n uint64) {
	if p.Call.Cut == nil {
		p.Call.Cut = map[string]uint64{}
	}
	p.Call.Cut[what] += n
}

// Keep stores a fact of the current image.
func (p *Process) Keep(f *model.Fact) *model.Fact {
	im := p.Current()
	im.Facts = append(im.Facts, f)
	if p.claim != nil {
		f.Attribution = &p.claim.Attribution
		if _, is := f.What.(*model.Connection); !is && p.worth(f.When) {
			p.claim.did(deed{fact: f})
		}
	}
	return f
}

// worth reports whether an interval is long enough for a fact.
func (p *Process) worth(when model.Interval) bool { return when.Took() >= int64(p.Op.MinSpan) }

func (p *Process) cut(c *event.Cut) {
	what := c.What
	switch what {
	case "bytes":
	case "requests":
		p.Op.Lacks("more requests of one process than are read")
	default:
		what = "other"
	}
	p.miss(what, c.Count)
}

// configuration is stored on the run: a shell script's cat reads for the plugin.
func (p *Process) configuration(c *event.Configuration) {
	if run := p.Run.Run; run.Configuration == nil || run.Configuration.Invalid != "" {
		run.Configuration = c
	}
}

func (p *Process) plain(now, start int64, thread uint32, what model.What, named string) {
	fact := &model.Fact{Thread: thread, When: Within(p.Current(), start, now), What: what}
	p.Current().Tallies[fact.Kind()].Add(1, fact.When.Took())
	p.latest = systemCall{thread, fact.When.Start}
	if p.Room(named) {
		p.Keep(fact)
	}
}

// missing records a polled file. A lock file delays the whole run, whichever command tries it.
func (p *Process) missing(now int64, b *event.Missing) {
	im := p.Current()
	if b.Error == "EEXIST" && p.work == nil {
		im = p.Run
	}
	for f, known := range model.Each[*model.Missing](im.Facts) {
		if known.Path == b.Path && known.Error == b.Error {
			known.Missing, f.When.End = b, max(f.When.End, now)
			return
		}
	}
	if !p.Room("polled files") {
		return
	}
	f := &model.Fact{When: Within(im, b.Start, now), Thread: b.Thread, What: &model.Missing{Missing: b}}
	if im == p.Current() {
		p.Keep(f)
	} else {
		im.Facts = append(im.Facts, f)
	}
}

func (p *Process) enter(e *event.Enter) {
	im := p.Current()
	im.Switches++
	if im.Entered.Key == "" && e.NetNS.Key != im.NetNS.Key {
		im.Entered = e.NetNS
	}
}

// Halt applies a sample of a stopped, frozen or resumed process.
func (p *Process) Halt(now int64, b *event.Agent) {
	middle, what := b.Since+(now-b.Since)/2, model.Halt{State: b.State, By: b.By}
	if p.halted != nil {
		if *p.halted.What.(*model.Halt) == what {
			p.halted.When.End = max(p.halted.When.End, now)
			return
		}
		p.halted.When.End = max(p.halted.When.End, middle)
		p.halted = nil
	}
	if b.State.Halted() && p.Room("stops") {
		p.halted = p.Keep(&model.Fact{When: Within(p.Current(), middle, now), What: &what})
	}
}

// Settle ends running images now, and those that outlived their run with it.
func Settle(im *model.Image, now int64) {
	if !im.Ended && !im.Outlived {
		im.End = max(im.End, now)
	}
	for _, child := range im.Children {
		Settle(child, now)
		if child.Outlived && !child.Ended {
			child.End = max(child.Start, im.End)
		}
	}
	for w := range im.Works() {
		Settle(w.Own, now)
		Settle(w.Shared, now)
	}
}

// NewImage returns a started image.
func NewImage(now int64, e *event.Exec, plugin bool) *model.Image {
	im := &model.Image{
		Program: model.Program{
			PID: e.PID, ParentPID: e.ParentPID, Process: e.Process, Parent: e.Parent,
			File: e.File, Name: e.Name, Args: e.Args, Hidden: e.Hidden, NetNS: e.NetNS, Build: e.Build,
			InFlight: e.InFlight, Unidentified: e.Unidentified, Truncated: e.Truncated,
		},
		Start: now, End: now,
	}
	if plugin {
		im.Run = &model.Run{Plugin: path.Base(e.File), Command: e.Call.Command}
	}
	return im
}

// ended completes an image; before is the consumption at its start.
func ended(im *model.Image, now int64, before, used event.Usage) {
	im.Ended = true
	im.End = max(now, im.Start)
	im.CPU = max(0, used.CPU-before.CPU)
	im.RunDelay = max(0, used.RunDelay-before.RunDelay)
}

func exited(im *model.Image, now int64, before event.Usage, e *event.Exit) {
	ended(im, now, before, e.Used)
	im.Code, im.Signal, im.Unseen = e.Code, e.Signal, e.Unseen
	if e.NetNS.Key != "" && e.NetNS != im.NetNS && im.NetNS.Key != "" {
		im.Switched = e.NetNS
	}
}

// Within clips an interval to an image's start.
func Within(im *model.Image, start, end int64) model.Interval {
	end = max(end, im.Start)
	return model.Interval{Start: min(max(start, im.Start), end), End: end}
}
