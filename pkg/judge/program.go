package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// program is the confirmed or the unconfirmed runs of one command in a call, with the commands that it ran in
// turn. Confirmed and unconfirmed time is never in one program.
type program struct {
	name string
	via  string // as of a span
	// by lists who ran it, the longest first.
	by      []*actor
	time    time.Duration
	runs    int
	longest time.Duration // of one run
	slowest *model.Image  // the longest run
	// candidate: an agent ran it, possibly for another call.
	candidate bool
	// inner is the name of the command that took most of the time; empty if that is the program itself.
	inner string

	within map[string]int64 // ns charged to it and to what it ran, by name
}

// actor is a plugin or an agent that ran a program.
type actor struct {
	plugin string // the plugin that ran it, or that waited for the agent
	// connection leads to the agent that ran it, and agent names an agent whose callers are invisible. Both are
	// empty if the plugin ran it.
	connection *model.Connection
	agent      string
	time       time.Duration
	runs       int
	// stack are the functions from which all runs came, innermost first; empty if they are unknown.
	stack []event.Frame
}

// programs lists the programs that were waited for, longest first.
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
	of := make([]outermost, len(e.spans)) // by the place of the outermost image
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
	}
	for _, p := range all {
		p.settle()
	}
	slices.SortStableFunc(all, func(a, b *program) int { return cmp.Compare(b.time, a.time) })
	return all
}

// actor returns who ran the outermost image s, which is new if s is its first run of the program.
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

// came counts a run that came from a stack.
func (a *actor) came(stack []event.Frame) {
	if a.runs++; a.runs > 1 {
		stack = model.CommonCallers(a.stack, stack)
	}
	a.stack = stack
}

// settle orders the actors and finds the inner program, after all times are added up.
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

// String says it as a person would: "in 2 runs of Get-NetAdapter > sleep, by agentd at /run/agent.sock while
// plugin antrea called it". That is all that is known: an agent may have run it for something else.
func (p *program) String() string {
	said := p.name
	if p.inner != "" {
		said += " > " + p.inner
	}
	if p.runs > 1 {
		said = fmt.Sprintf("%d runs of %s", p.runs, said)
	}
	said = "in " + said + ", "
	for i, a := range p.by {
		if i > 0 {
			said += " and "
		}
		if len(p.by) > 1 {
			said += fmt.Sprintf("%d ", a.runs)
		}
		said += "by " + a.ran(p.via)
		if len(a.stack) > 0 {
			said += ", from " + model.CallPath(a.stack)
		}
	}
	return said
}

// ran names who ran a program, and for which caller.
func (a *actor) ran(via string) string {
	switch {
	case a.connection != nil && via != "":
		return peerName(a.connection) + ", " + via
	case a.connection != nil:
		return a.String() + " while plugin " + a.plugin + " called it"
	case a.agent != "":
		return a.agent + " while plugin " + a.plugin + " waited"
	}
	return a.String()
}

// String names the actor: "plugin antrea", "agentd at /run/agent.sock".
func (a *actor) String() string {
	switch {
	case a.connection != nil:
		return Peer(a.connection)
	case a.agent != "":
		return a.agent
	}
	return "plugin " + a.plugin
}
