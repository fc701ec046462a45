package active

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// unfollowed is the error of an exchange whose end was not seen.
const unfollowed = "unfollowed"

const supposedMax = 64

type stream struct {
	by     event.Process
	socket string
}

func (c *connection) stream() stream { return stream{c.by, c.socket} }

// Apply applies an event of a connection. attribute finds the process of a new exchange, if any.
func (cs *Connections) Apply(now int64, body event.Body, attribute func(event.Body) *Process) {
	switch b := body.(type) {
	case *event.Accept:
		cs.accept(b)
	case *event.Close:
		cs.close(now, b)
	case *event.Exchange:
		cs.exchange(now, b, attribute)
	}
}

func (cs *Connections) exchange(now int64, x *event.Exchange, attribute func(event.Body) *Process) {
	receipt, asked := cs.reads.receipt(x, x.Start), int64(0)
	if x.Last > x.Start && !cs.reads.receipt(x, x.Last) {
		asked = x.Last
	}
	key := stream{x.Process, x.Socket}
	c := cs.pending[key]
	switch {
	case c == nil && (x.Error == unfollowed ||
		x.Pending && x.Peer != nil && cs.agents.departed.of(x.Peer.Process) != nil):
		return
	case x.Error == unfollowed: // the last report is the latest knowledge
		now = c.fact.When.End
	case !x.Pending:
		cs.reads.add(now, x)
		cs.spoke(now, x)
		c = cs.pending[key]
	}
	if c != nil && cs.superseded(c, x) {
		delete(cs.pending, key)
		c.hangUp(c.fact.When.End)
		c = nil
	}
	if c == nil {
		if c = cs.exchanges(now, x, attribute(x), receipt); c == nil {
			return
		}
	}
	if c.gone() { // the caller reads the end of the stream later
		now = c.Work.Gone
	}
	cs.update(c, x, now, asked)
	switch {
	case x.Pending && c.gone():
		return
	case x.Pending:
		cs.serve(c)
		return
	}
	c.Error, c.fact.Thread = x.Error, x.Thread
	delete(cs.pending, key)
	c.hangUp(now)
}

func (cs *Connections) update(c *connection, x *event.Exchange, now, asked int64) {
	c.fact.When.End = max(c.fact.When.End, now)
	if (c.Exchange.Clipped || c.Exchange.Receipt) && c.Exchange.Asked == 0 && asked > c.fact.When.Start {
		c.Exchange.Asked = asked
	}
	if x.Peer != nil {
		peer := *x.Peer
		c.Agent, c.Answered = &peer, true
		cs.agents.departed.succeed(c)
	}
}

// superseded reports whether a report is of the next exchange, because the pending one's end was lost.
func (cs *Connections) superseded(c *connection, x *event.Exchange) bool {
	if x.Start > c.fact.When.End {
		return true
	}
	if x.Pending && !cs.agents.works(x.Process, c.owner) { // another caller also waits for it
		c.Exchange.Unended = true
		return true
	}
	return false
}

func (cs *Connections) spoke(now int64, x *event.Exchange) {
	if x.Peer == nil {
		return
	}
	cs.supposed = slices.DeleteFunc(cs.supposed, func(c *connection) bool {
		if c.Open && c.by == x.Process && c.Agent != nil && c.Agent.PID == x.Peer.PID {
			delete(cs.pending, c.stream())
			c.fact.When.End = max(c.fact.When.Start, now)
			c.hangUp(now)
		}
		return !c.Open
	})
}

// serve attributes work to the exchange, whose times are more exact than its connection's.
func (cs *Connections) serve(c *connection) {
	cs.agents.serve(c)
	if dialled := cs.sockets[c.socket]; c.work != nil && dialled != nil && dialled.by == c.by && dialled.work != nil {
		dialled.work.agent.leave(dialled)
	}
}

func (cs *Connections) exchanges(now int64, x *event.Exchange, p *Process, receipt bool) *connection {
	if p == nil {
		return nil
	}
	im := p.Current()
	when := Within(im, x.Start, now)
	if !x.Pending && !p.worth(when) || !p.Room("exchanges") {
		return nil
	}
	exchange := &model.Exchange{Unasked: x.Unasked, Clipped: x.Start < when.Start, Receipt: receipt}
	made := &connection{
		Connection: &model.Connection{Network: x.Network, Address: x.Address, Exchange: exchange},
		by:         x.Process, owner: p, socket: x.Socket, image: im, among: cs,
	}
	made.keep(x.Thread, when)
	if dialled := cs.sockets[x.Socket]; dialled != nil && dialled.by == x.Process {
		dialled.Exchanged++
	}
	if x.Pending {
		made.Open = true
		cs.pending[made.stream()] = made
		p.Connections = append(p.Connections, made)
		if x.Start == 0 && !x.Unasked && len(cs.supposed) < supposedMax {
			cs.supposed = append(cs.supposed, made)
		}
	}
	return made
}

type reads map[stream]read

type read struct {
	at    int64
	spoke bool // the other end sends unasked
}

const (
	// readsMax bounds the known streams; an agent has dozens.
	readsMax = 1024
	// soon is how fast an agent acknowledges a read: in the goroutine that reads, or in one that it wakes (HTTP/2's
	// WINDOW_UPDATE, RFC 9113, 6.9).
	soon = 5 * time.Millisecond
)

// receipt reports whether a write may only have acknowledged the previous read, as on HTTP/2. Then nothing waits for an
// answer.
func (rs reads) receipt(x *event.Exchange, at int64) bool {
	last, known := rs[stream{x.Process, x.Socket}]
	return known && last.spoke && !x.Unasked && at >= last.at && at-last.at <= int64(soon)
}

func (rs reads) add(now int64, x *event.Exchange) {
	key := stream{x.Process, x.Socket}
	if _, known := rs[key]; !known && len(rs) >= readsMax {
		rs.forget()
	}
	rs[key] = read{now, rs[key].spoke || x.Unasked}
}

func (rs reads) forget() {
	all := slices.SortedFunc(maps.Keys(rs), func(a, b stream) int {
		return cmp.Or(cmp.Compare(rs[a].at, rs[b].at), cmp.Compare(a.socket, b.socket), cmp.Compare(a.by, b.by))
	})
	for _, s := range all[:len(all)/4] {
		delete(rs, s)
	}
}
