package active

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

type connection struct {
	*model.Connection
	by     event.Process
	owner  *Process // the process, or its agent's stand-in
	socket string
	image  *model.Image
	fact   *model.Fact
	after  *model.Fact // earlier refused attempts
	work   *work
	among  *Connections
}

// acceptsMax bounds early accepts: over loopback, accept may return before connect.
const acceptsMax = 64

const threadsMax = 8

// Connections are the open connections, by socket.
type Connections struct {
	agents  *Agents
	sockets map[string]*connection
	pending map[stream]*connection
	// supposed have an unseen request, and a halted peer. Some may have ended.
	supposed []*connection
	reads    reads
	accepts  []*event.Accept
}

// NewConnections returns an empty set.
func NewConnections(a *Agents) *Connections {
	return &Connections{
		agents: a, sockets: map[string]*connection{}, pending: map[stream]*connection{}, reads: reads{},
	}
}

// Connect records a connection or an attempt by p, or by its agent.
func (cs *Connections) Connect(now int64, c *event.Connect, p *Process) {
	im := p.Current()
	if made := cs.sockets[c.Socket]; made != nil && made.by == c.Process && c.Error != "" {
		cs.refuse(made, now, c.Error)
		return
	}
	when := Within(im, c.Start, now)
	refused := refused(im, c.Network, c.Address)
	if refused != nil {
		refused.When.End = max(refused.When.End, when.Start)
		if c.Error != "" {
			again(refused, when.End, c.Error)
			return
		}
	}
	if c.Address == "" || !p.Room("connections") {
		return
	}
	made := &connection{
		Connection: &model.Connection{Network: c.Network, Address: c.Address, Error: c.Error, Agent: c.Listener, Tries: 1},
		by:         c.Process, owner: p, socket: c.Socket, after: refused, image: im, among: cs,
	}
	made.keep(c.Thread, when)
	if c.Error == "" && c.Socket != "" {
		if before := cs.sockets[c.Socket]; before != nil {
			before.hangUp(now)
		}
		made.Open = true
		cs.sockets[c.Socket] = made
		p.Connections = append(p.Connections, made)
		if i := slices.IndexFunc(cs.accepts, func(a *event.Accept) bool { return a.Socket == c.Socket }); i >= 0 {
			made.answered(cs.accepts[i])
			cs.agents.serve(made)
			cs.accepts = slices.Delete(cs.accepts, i, i+1)
		}
	}
}

func (cs *Connections) refuse(made *connection, now int64, why string) {
	delete(cs.sockets, made.socket)
	made.hangUp(now)
	if made.after == nil {
		made.Error = why
		return
	}
	again(made.after, now, why)
	made.image.Facts = slices.DeleteFunc(made.image.Facts, func(f *model.Fact) bool { return f == made.fact })
}

func (c *connection) keep(thread uint32, when model.Interval) {
	c.fact = c.owner.Keep(&model.Fact{Thread: thread, When: when, What: c.Connection})
	if cl := c.owner.claim; cl != nil {
		cl.did(deed{fact: c.fact, connection: c})
	}
}

func again(refused *model.Fact, now int64, why string) {
	c := refused.What.(*model.Connection)
	refused.When.End, c.Error = max(refused.When.End, now), why
	c.Tries++
}

// refused returns attempts refused since the last success, or nil.
func refused(im *model.Image, network, address string) *model.Fact {
	for _, f := range slices.Backward(im.Facts) {
		c, is := f.What.(*model.Connection)
		if is && c.Exchange == nil && c.Network == network && c.Address == address {
			if c.Error == "" {
				return nil
			}
			return f
		}
	}
	return nil
}

func (cs *Connections) accept(a *event.Accept) {
	if c := cs.sockets[a.Socket]; c != nil {
		if a.Thread != nil && len(c.Threads) < threadsMax {
			c.Threads = append(c.Threads, a.Thread)
		}
		if c.Answered && (a.Listens || a.Thread != nil) {
			return
		}
		c.answered(a)
		cs.agents.serve(c)
		return
	}
	cs.accepts = model.Latest(cs.accepts, acceptsMax, a)
}

func (c *connection) answered(a *event.Accept) {
	agent := a.Agent
	c.Agent, c.Answered = &agent, !a.Listens
}

func (cs *Connections) close(now int64, c *event.Close) {
	if made := cs.sockets[c.Socket]; made != nil && made.by == c.Process {
		made.hangUp(now)
		delete(cs.sockets, c.Socket)
	}
}

func (c *connection) hangUp(now int64) {
	if c.Open {
		c.Open, c.fact.When.End = false, max(c.fact.When.End, now)
		c.served()
	}
}

func (c *connection) gone() bool { return c.Work != nil && c.Work.Gone != 0 }

func (c *connection) disconnect(now int64) {
	cs := c.among
	if c.Exchange != nil { // its last report is the latest knowledge
		now, c.Exchange.Unended = c.fact.When.End, c.Exchange.Unended || c.Open
	}
	c.hangUp(now)
	if cs.sockets[c.socket] == c {
		delete(cs.sockets, c.socket)
	}
	if cs.pending[c.stream()] == c {
		delete(cs.pending, c.stream())
	}
	cs.supposed = slices.DeleteFunc(cs.supposed, func(s *connection) bool { return !s.Open })
}
