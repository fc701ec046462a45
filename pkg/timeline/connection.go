package timeline

import "github.com/cniscope/cniscope/pkg/event"

// Connection is that an image called another process.
type Connection struct {
	// Network is "unix" or "tcp"; Address a path or "address:port".
	Network, Address string
	// Interval is from connect until close; of refused attempts, from the first to the
	// last, or to the one that was not refused.
	Interval
	// Error is why there was no connection, the last time, and Tries how often it was
	// tried.
	Error string
	Tries int
	// Server is who answered, or else who made the socket that listens; nil if it is not
	// known. Answered tells which.
	Server   *event.Holder
	Answered bool

	open   bool
	by     event.Process
	socket string
}

func (t *Timeline) connect(now int64, c *event.Connect) {
	p := t.of(c.Process)
	if p == nil {
		return
	}
	im := p.current()
	when := im.within(c.Start, now)
	refused := im.refused(c.Network, c.Address)
	if refused != nil {
		refused.End = max(refused.End, when.Start)
		if c.Error != "" {
			refused.End, refused.Error = max(refused.End, when.End), c.Error
			refused.Tries++
			return
		}
	}
	if !t.room(p, "connections") {
		return
	}
	made := &Connection{Network: c.Network, Address: c.Address, Interval: when, Error: c.Error, Server: c.Listener, Tries: 1, by: c.Process, socket: c.Socket}
	in := im.inside()
	in.Connections = append(in.Connections, made)
	if c.Error == "" && c.Socket != "" {
		if before := t.sockets[c.Socket]; before != nil { // its end was not seen
			before.hangUp(now)
		}
		made.open = true
		t.sockets[c.Socket] = made
		p.connections = append(p.connections, made)
	}
}

// refused returns the attempts at an address that have failed so far, if nothing has come
// of them yet.
func (im *Image) refused(network, address string) *Connection {
	if im.Inside == nil {
		return nil
	}
	var found *Connection
	for _, c := range im.Inside.Connections {
		if c.Network == network && c.Address == address {
			found = c
		}
	}
	if found == nil || found.Error == "" {
		return nil
	}
	return found
}

func (t *Timeline) accept(a *event.Accept) {
	if c := t.sockets[a.Socket]; c != nil {
		server := a.Server
		c.Server, c.Answered = &server, true
	}
}

// hangUp takes the end of a connection.
func (t *Timeline) hangUp(now int64, c *event.Close) {
	if made := t.sockets[c.Socket]; made != nil && made.by == c.Process {
		made.hangUp(now)
		delete(t.sockets, c.Socket)
	}
}

func (c *Connection) hangUp(now int64) {
	if c.open {
		c.open, c.End = false, max(c.End, now)
	}
}

// disconnect ends the connections of a process that is over, or no longer followed.
func (t *Timeline) disconnect(p *process, now int64) {
	for _, c := range p.connections {
		if c.hangUp(now); t.sockets[c.socket] == c {
			delete(t.sockets, c.socket)
		}
	}
	p.connections = nil
}
