package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Connection is one connect(2), or a series of refused attempts at one address: from connect until close; of
// refused attempts from the first to the last, or to the one that was not refused. Or it is one Exchange.
type Connection struct {
	// Network is "unix" or "tcp"; Address a path or "address:port".
	Network, Address string
	// Error is why there was no connection, the last time, and Tries how often it was tried; of an
	// exchange why it never had an answer.
	Error string
	Tries int
	// Agent is who answered, or else who made the socket that listens; nil if it is not
	// known. Answered tells which.
	Agent    *event.Actor
	Answered bool
	// Work is what the agent did meanwhile; nil if that is not known.
	Work *Work
	// Exchange says more of one exchange on a standing stream; nil of a connection that was made.
	Exchange *Exchange
	// Exchanged is how many exchanges on this connection were told. Each is a fact of its own, and
	// what was waited for; this one is only open meanwhile.
	Exchanged int

	open   bool
	by     event.Process
	owner  *process // who has it: by, or the work of the agent that by is
	socket string
	image  *Image // that made it
	fact   *Fact
	after  *Connection // the attempts that were refused before
	nested int         // how many agents are between it and a run
}

func (*Connection) kind() FactKind { return FactConnection }

// acceptsMax bounds the accepts that wait for their connect: over loopback accept may return first.
const acceptsMax = 64

// connections are those that are open, by socket.
type connections struct {
	agents  *agents
	sockets map[string]*Connection
	pending map[stream]*Connection // exchanges without an end
	// supposed are those of them of which nobody saw what was asked: the other end stands still. Some may be over.
	supposed []*Connection
	reads    reads
	accepts  []*event.Accept // of connections that are not told yet
}

func newConnections(a *agents) *connections {
	return &connections{agents: a, sockets: map[string]*Connection{}, pending: map[stream]*Connection{}, reads: reads{}}
}

// connect records a connection that p made, or tried to make. Of an agent's connection p stands for its work.
func (cs *connections) connect(now int64, c *event.Connect, p *process) {
	im := p.current()
	if made := cs.sockets[c.Socket]; made != nil && made.by == c.Process && c.Error != "" {
		cs.refuse(made, now, c.Error)
		return
	}
	when := im.within(c.Start, now)
	refused := im.refused(c.Network, c.Address)
	if refused != nil {
		refused.fact.When.End = max(refused.fact.When.End, when.Start)
		if c.Error != "" {
			refused.again(when.End, c.Error)
			return
		}
	}
	if c.Address == "" || !p.room("connections") {
		return
	}
	made := &Connection{
		Network: c.Network, Address: c.Address, Error: c.Error, Agent: c.Listener, Tries: 1,
		by: c.Process, owner: p, socket: c.Socket, after: refused, image: im, nested: p.nested,
	}
	made.fact = p.keep(c.Thread, when, made)
	if c.Error == "" && c.Socket != "" {
		if before := cs.sockets[c.Socket]; before != nil { // its end was not seen
			before.hangUp(now)
		}
		made.open = true
		cs.sockets[c.Socket] = made
		p.connections = append(p.connections, made)
		if i := slices.IndexFunc(cs.accepts, func(a *event.Accept) bool { return a.Socket == c.Socket }); i >= 0 {
			made.answered(cs.accepts[i])
			cs.agents.serve(made)
			cs.accepts = slices.Delete(cs.accepts, i, i+1)
		}
	}
}

// refuse turns a connection that was only begun into a refused attempt.
func (cs *connections) refuse(made *Connection, now int64, why string) {
	delete(cs.sockets, made.socket)
	made.hangUp(now)
	if made.after == nil {
		made.Error = why
		return
	}
	made.after.again(now, why)
	made.image.Facts = slices.DeleteFunc(made.image.Facts, func(f *Fact) bool { return f == made.fact })
}

// again is one more attempt that was refused.
func (c *Connection) again(now int64, why string) {
	c.fact.When.End, c.Error = max(c.fact.When.End, now), why
	c.Tries++
}

// refused returns the attempts at an address that have failed so far, if nothing has come of them yet.
func (im *Image) refused(network, address string) *Connection {
	for _, f := range slices.Backward(im.Facts) {
		c, is := f.What.(*Connection)
		if is && c.Exchange == nil && c.Network == network && c.Address == address {
			if c.Error == "" {
				return nil
			}
			return c
		}
	}
	return nil
}

func (cs *connections) accept(a *event.Accept) {
	if c := cs.sockets[a.Socket]; c != nil {
		if c.Answered && a.Listens {
			return
		}
		c.answered(a)
		cs.agents.serve(c)
		return
	}
	if len(cs.accepts) >= acceptsMax {
		cs.accepts = slices.Delete(cs.accepts, 0, 1)
	}
	cs.accepts = append(cs.accepts, a)
}

func (c *Connection) answered(a *event.Accept) {
	agent := a.Agent
	c.Agent, c.Answered = &agent, !a.Listens
}

// hangUp ends a connection that was closed.
func (cs *connections) hangUp(now int64, c *event.Close) {
	if made := cs.sockets[c.Socket]; made != nil && made.by == c.Process {
		made.hangUp(now)
		delete(cs.sockets, c.Socket)
	}
}

func (c *Connection) hangUp(now int64) {
	if c.open {
		c.open, c.fact.When.End = false, max(c.fact.When.End, now)
		c.served()
	}
}

// disconnect ends the connections of a process that is over, or no longer followed.
func (cs *connections) disconnect(p *process, now int64) {
	for _, c := range p.connections {
		end := now
		if c.Exchange != nil { // its last report is all that is known
			end, c.Exchange.Unended = c.fact.When.End, c.Exchange.Unended || c.open
		}
		if c.hangUp(end); cs.sockets[c.socket] == c {
			delete(cs.sockets, c.socket)
		}
		if cs.pending[c.stream()] == c {
			delete(cs.pending, c.stream())
		}
	}
	p.connections = nil
	cs.supposed = slices.DeleteFunc(cs.supposed, func(c *Connection) bool { return !c.open })
}
