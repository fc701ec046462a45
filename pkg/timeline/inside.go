package timeline

import (
	"github.com/cniscope/cniscope/pkg/event"
)

// inside takes what happened inside a process.
func (t *Timeline) inside(now int64, body event.Body) {
	if by := body.Doer(); t.agents[by] != nil && t.processes[by] == nil && !bySocket(body) {
		// A server does it, for one of those who called.
		p := t.doing(by, body)
		if p == nil {
			return
		}
		t.processes[by] = p
		defer delete(t.processes, by)
	}
	switch b := body.(type) {
	case *event.Wait:
		t.wait(now, b)
	case *event.Request:
		t.request(now, b)
	case *event.Answer:
		t.answer(b)
	case *event.Address:
		t.address(now, b)
	case *event.Link:
		t.link(b)
	case *event.Setting:
		t.setting(now, b)
	case *event.Enter:
		t.enter(b)
	case *event.Connect:
		t.connect(now, b)
	case *event.Accept:
		t.accept(b)
	case *event.Close:
		t.hangUp(now, b)
	case *event.Agent:
		t.agentState(b)
	case *event.Configuration:
		t.configuration(b)
	case *event.Result:
		t.result(b)
	case *event.Cut:
		t.cut(b)
	case *event.Detail:
		t.detail(b)
	case *event.FirstConnection:
		t.firstConnection(now, b)
	}
}

// bySocket tells the events that belong to a connection, whoever's doing they are.
func bySocket(body event.Body) bool {
	switch body.(type) {
	case *event.Accept, *event.Close:
		return true
	}
	return false
}

// of returns the process of a fact from inside; nil, and then it is counted, if it belongs
// to nothing that is open.
func (t *Timeline) of(key event.Process) *process {
	p := t.processes[key]
	if p == nil {
		t.stats.Late++
	}
	return p
}

// current is the image that p runs; of a subshell, which runs none, that of who forked it.
func (p *process) current() *Image {
	if p.image != nil {
		return p.image
	}
	return p.up
}

// room reports whether the operation of p keeps one more fact, and counts it.
func (t *Timeline) room(p *process, what string) bool {
	op := p.op
	if op.facts < t.options.Facts {
		op.facts++
		return true
	}
	p.call.cut(what, 1)
	op.partial("more " + what + " than the limit")
	return false
}

func (c *Call) cut(what string, n uint64) {
	if c.Cut == nil {
		c.Cut = map[string]uint64{}
	}
	c.Cut[what] += n
}

// cut takes what the source did not keep.
func (t *Timeline) cut(c *event.Cut) {
	p := t.of(c.Process)
	if p == nil {
		return
	}
	what := c.What
	switch what {
	case "bytes": // of what was read or written: what is known of it is still right
	case "requests":
		p.op.partial("more requests of one process than are read")
	default:
		what = "other"
	}
	p.call.cut(what, c.Count)
}

// detail says that the inside of what runs is seen from now on, or not.
func (t *Timeline) detail(d *event.Detail) {
	t.seeing = d.On
	if !d.On {
		return
	}
	for _, op := range t.open {
		for _, call := range op.Calls {
			call.Seen = call.Seen || call.live() != nil
		}
	}
}

func (t *Timeline) setting(now int64, s *event.Setting) {
	p := t.of(s.Process)
	if p == nil {
		return
	}
	im := p.current()
	when := im.within(s.Start, now)
	im.Tallies[FactSetting].add(1, when.took())
	im.latest = systemCall{s.Thread, when.Start}
	t.inNamespace(p, s.NetNS)
	if t.room(p, "sysctls") {
		p.keep(im, s.Thread, when, &Setting{s})
	}
}
