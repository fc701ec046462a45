package timeline

import (
	"path"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/tree"
)

func (t *Timeline) exec(now int64, e *event.Exec) []*Operation {
	step, p := t.tree.Apply(e), t.processes[e.Process]
	switch {
	case step.Role == tree.Unknown:
		t.stats.Late++
		return nil
	case step.Role == tree.Refused:
		t.oneTooMany(t.processes[e.Parent])
		return nil
	case step.Role == tree.Root:
		if p != nil { // an agent's, which goes on as the plugin that it runs
			p.replace(now, e)
		}
		if by := t.commissioned(e, step.Process.Run); by != nil {
			p = by
		} else if p == nil {
			return t.root(now, e)
		}
	case p != nil:
	case t.processes[e.Parent] != nil: // its fork was lost
		p = t.add(e.Process, t.processes[e.Parent])
	default:
		if p = t.work(e, step.Process); p == nil {
			return nil
		}
	}
	if !p.op.keep(t.options.Images) {
		return nil
	}
	im := newImage(now, e)
	im.Attribution, p.evidence = p.evidence, nil
	p.replace(now, e)
	im.Outlived = p.run.Ended // it was forked before that
	p.up.Children = append(p.up.Children, im)
	p.image = im
	if step.Role == tree.Delegate || step.Role == tree.Root {
		im.Run = &Run{Plugin: path.Base(e.File), Command: e.Call.Command, forker: e.Parent}
		p.run, p.up = im, im // what it starts inherits this one
	}
	return nil
}

// replace ends the image of a process that runs another one now. That of a run goes on: a run
// is its process, whatever that runs.
func (p *process) replace(now int64, e *event.Exec) {
	if p.image != nil && p.image != p.run {
		p.image.end(now, e.Used)
		p.image.Replaced = true
	}
}

func newImage(now int64, e *event.Exec) *Image {
	return &Image{
		PID: e.PID, ParentPID: e.ParentPID, Process: e.Process,
		File: e.File, Name: e.Name, Args: e.Args, Hidden: e.Hidden,
		NetNS: e.NetNS, Start: now, End: now, used: e.Used,
		InFlight: e.InFlight, Truncated: e.Truncated,
	}
}

func (im *Image) end(now int64, used event.Usage) {
	im.Ended = true
	im.End = max(now, im.Start)
	im.CPU = max(0, used.CPU-im.used.CPU)
	im.RunDelay = max(0, used.RunDelay-im.used.RunDelay)
}

func (op *operation) keep(limit int) bool {
	if op.images+op.facts >= limit {
		op.Dropped++
		op.partial("more programs than the limit")
		return false
	}
	op.images++
	return true
}

func (t *Timeline) exit(now int64, e *event.Exit) {
	t.locks.gone(e.Process, now)
	step, p := t.tree.Apply(e), t.processes[e.Process]
	if p == nil {
		if a := t.agents[e.Process]; a != nil {
			t.gone(now, e.Process, a)
		} else if step.Role == tree.Unknown {
			t.stats.Late++
		}
		return
	}
	delete(t.processes, e.Process)
	t.suspects.over(e.Process, p)
	t.gaveUp(p)
	t.disconnect(p, now)
	if e.Unseen {
		p.op.partial("the end of a process was not seen")
	}
	if p.image != nil {
		p.image.exit(now, e)
	}
	if p.run.Process != e.Process {
		return
	}
	if p.run != p.image {
		p.run.exit(now, e)
	}
	t.outlive(p.run)
	if call := p.op.callOf(p.run); call != nil {
		p.op.live--
		call.End = max(call.End, now)
		p.op.End = max(p.op.End, now)
	}
}

func (im *Image) exit(now int64, e *event.Exit) {
	im.end(now, e.Used)
	im.Code, im.Signal, im.Unseen = e.Code, e.Signal, e.Unseen
	if e.NetNS.Key != "" && e.NetNS != im.NetNS && im.NetNS.Key != "" {
		im.Switched = e.NetNS
	}
}

// outlive marks what still runs below a run that is over. It never holds a call open.
func (t *Timeline) outlive(run *Image) {
	run.Walk(func(im *Image) {
		if !im.Ended {
			im.Outlived = true
		}
	})
}

// callOf returns the call that run is a link of; nil for a delegate.
func (op *operation) callOf(run *Image) *Call {
	for _, call := range op.Calls {
		for _, r := range call.Runs {
			if r == run {
				return call
			}
		}
	}
	return nil
}
