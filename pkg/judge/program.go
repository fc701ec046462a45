package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// program is the runs of one command in a call, including what they ran, either confirmed or unconfirmed.
type program struct {
	name string
	via  string
	// by lists who ran it, longest first.
	by        []*actor
	time      time.Duration
	runs      int
	longest   time.Duration
	computed  time.Duration // on a CPU
	slowest   *model.Image
	candidate bool
	// inner names the command that took most of the time, if it is another.
	inner string

	within map[string]int64 // ns by name
}

type actor struct {
	plugin string // ran it, or waited for the agent
	// connection leads to the agent that ran it; agent names one with invisible callers. A plugin has neither.
	connection *model.Connection
	agent      string
	time       time.Duration
	runs       int
	// stack is common to all runs, innermost first.
	stack []event.Frame
}

func (e *evidence) programs() []*program {
	if e.ran == nil {
		e.ran = e.listPrograms()
	}
	return e.ran
}

func (e *evidence) listPrograms() (all []*program) {
	type key struct {
		name, via string
		candidate bool
	}
	type outermost struct {
		*program
		*actor
		time int64
	}
	index := map[key]*program{}
	of := make([]outermost, len(e.spans)) // by index of the outermost image
	for i := range e.spans {
		s := &e.spans[i]
		if s.top < 0 {
			continue
		}
		o := &of[s.top] // parents come before children
		if o.program == nil {
			k := key{s.image.Name, s.via, s.candidate}
			p := index[k]
			if p == nil {
				p = &program{name: k.name, via: k.via, candidate: k.candidate, within: map[string]int64{}}
				index[k] = p
				all = append(all, p)
			}
			o.program, o.actor = p, p.actor(s)
			p.runs++
			o.came(s.image.Stack)
		}
		p, own := o.program, time.Duration(s.own)
		o.time += s.own
		p.time += own
		o.actor.time += own
		if run := time.Duration(o.time); p.slowest == nil || run > p.longest {
			p.longest, p.slowest = run, e.spans[s.top].image
		}
		p.within[s.image.Name] += s.own
		p.computed += time.Duration(min(s.image.CPU, s.own))
	}
	for _, p := range all {
		p.settle()
	}
	slices.SortStableFunc(all, func(a, b *program) int { return cmp.Compare(b.time, a.time) })
	for i, p := range all {
		confirmed := index[key{p.name, p.via, false}]
		if at := slices.Index(all, confirmed); p.candidate && at == i+1 && 2*confirmed.time > p.time {
			all[i], all[at] = confirmed, p
		}
	}
	return all
}

func (p *program) actor(s *span) *actor {
	a := &actor{plugin: s.plugin, connection: s.served, agent: s.ranBy}
	for _, known := range p.by {
		if known.String() == a.String() && known.plugin == a.plugin {
			return known
		}
	}
	p.by = append(p.by, a)
	return a
}

func (a *actor) came(stack []event.Frame) {
	if a.runs++; a.runs > 1 {
		stack = model.CommonCallers(a.stack, stack)
	}
	a.stack = stack
}

func (p *program) settle() {
	slices.SortStableFunc(p.by, func(a, b *actor) int { return cmp.Compare(b.time, a.time) })
	most := p.name
	for name, own := range p.within {
		if own > p.within[most] || own == p.within[most] && most != p.name && name < most {
			most = name
		}
	}
	if most != p.name {
		p.inner = most
	}
}

// String is a clause.
func (p *program) String() string {
	inner := ""
	if p.inner != "" {
		inner = ", which ran " + p.inner
	}
	if len(p.by) == 1 {
		a := p.by[0]
		return a.subject(p.via) + " ran " + p.name + times(p.runs) + inner + a.circumstances(p)
	}
	said, joint, what, while := "", "", p.name, ", while"
	for _, a := range p.by {
		often := " once"
		if a.runs > 1 {
			often = fmt.Sprintf(" %d times", a.runs)
		}
		said += joint + a.subject(p.via) + " ran " + what + often + inner +
			strings.Replace(a.circumstances(p), ", while", while, 1)
		joint, what, inner, while = ", and ", "it", "", " while"
	}
	return said
}

func (e *evidence) unconfirmed(p *program) string {
	n := 0
	for _, other := range e.programs() {
		if other.name == p.name && other.candidate {
			n += other.runs
		}
	}
	if n == 0 || p.candidate {
		return ""
	}
	return "; " + text.Count(n, "more run") + " of " + p.name + " may be for another pod (unconfirmed)"
}

func (a *actor) subject(via string) string {
	if a.connection != nil && via != "" {
		return peerName(a.connection)
	}
	return a.String()
}

func (a *actor) circumstances(p *program) (said string) {
	switch {
	case a.connection != nil && p.via != "":
		said = ", while plugin " + a.plugin + " waited " + p.via
	case a.connection != nil || a.agent != "":
		said = ", while plugin " + a.plugin + " waited"
	}
	if len(a.stack) > 0 {
		said += "; Go function " + model.CallPath(a.stack) + " started " + p.name
	}
	return said
}

func (a *actor) String() string {
	switch {
	case a.connection != nil:
		return Peer(a.connection)
	case a.agent != "":
		return a.agent
	}
	return "plugin " + a.plugin
}
