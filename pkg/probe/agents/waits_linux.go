package agents

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

const (
	// pendingAfter is when a request is reported.
	pendingAfter = 50 * time.Millisecond
	// searchAfter is when to look for other halted processes.
	searchAfter, searchEvery = 100 * time.Millisecond, time.Second
	// deepest bounds the distance from the plugin: agents are at 1, their peers at 2 and 3.
	deepest            = 3
	maxPeers, maxWaits = 16, 64
	// lostAfter is how long a wait stays after the kernel's table lost it, without an event.
	lostAfter = time.Second
)

type wait struct {
	event.Exchange
	key      kernel.Key // the peer
	inode    uint64     // of the peer's end
	seen     int64
	supposed bool // the request was unseen; the peer is halted
	ended    bool // the peer exited; the kernel side reports when its end is read
}

type end struct {
	actor     event.Actor
	inode     uint64
	name      string // sanitized; may be empty
	again     int64  // next search
	searching bool
}

type peer struct {
	key      kernel.Key
	name     string
	depth    int
	followed bool
	memory   memory
	waited   int64 // last wait for it
	sampled  int64
	searched int64
	looked   int // the PID at which the last search stopped
}

func (a *Agents) look(now int64) {
	a.search.begin(now)
	for _, s := range a.kernel.Waiting(now - int64(pendingAfter)) {
		root := kernel.ProcessOf(s.Root)
		// Data on a shared stream may be for others, so the agent may still wait on any that it used during the call.
		if depth := a.awaited(now, root); depth > 0 && (s.Wrote != 0 || a.known[root] != nil && int64(s.Last) >= a.called(root)) {
			a.pend(now, &s, depth)
		}
	}
	for socket, w := range a.waits {
		if p := a.peers[w.Process]; w.supposed && p != nil && p.waited == now {
			w.seen = now
			a.tell(now, w, p.depth)
		}
		switch _, tracked := a.kernel.Depth(w.Process); {
		case w.seen == now:
		case w.supposed, !tracked, now-w.seen > int64(lostAfter):
			a.abandon(socket, "unfollowed")
		}
	}
}

// awaited is the distance to a waiting plugin; 0 without one.
func (a *Agents) awaited(now int64, process event.Process) int {
	if known := a.known[process]; known != nil && known.connections > 0 {
		return max(1, known.depth)
	}
	if p := a.peers[process]; p != nil && now-p.waited < 2*int64(sampleAfter) {
		return p.depth
	}
	return 0
}

func (a *Agents) pend(now int64, s *kernel.InsideStream, depth int) {
	socket, start, last := socketOf(s), int64(s.Wrote), int64(s.Last)
	if start == 0 {
		start = int64(s.Read)
	}
	w := a.waits[socket]
	if w == nil || w.Start != start {
		if len(a.waits) >= maxWaits {
			return
		}
		w = &wait{Exchange: event.Exchange{
			Process: kernel.ProcessOf(s.Self), Start: start, Socket: socket, Network: "tcp", Pending: true, Unasked: s.Wrote == 0,
		}}
		if s.Family == unix.AF_UNIX {
			w.Network = "unix"
		} else {
			w.Address = addressOf(s.OtherAddress, s.OtherPort).String()
		}
		a.waits[socket] = w
	}
	if w.seen = now; w.ended {
		return
	}
	if w.Peer == nil {
		a.resolve(now, w, s)
	}
	if last > start {
		w.Last = last
	}
	a.tell(now, w, depth)
}

func (a *Agents) resolve(now int64, w *wait, s *kernel.InsideStream) {
	e := a.ends[w.Socket]
	if e == nil || e.actor.Process != "" && !Alive(kernel.KeyOf(e.actor.Process, e.actor.PID)) {
		e = &end{}
		a.remember(w.Socket, e)
	}
	if e.actor.Process == "" && (e.searching || now >= e.again) {
		if !e.searching {
			e.again, e.inode = now+int64(searchEvery), inodeOfOther(s)
		}
		if e.inode != 0 {
			a.find(now, e, s)
		}
	}
	if w.inode = e.inode; e.actor.Process != "" {
		actor := e.actor
		w.key, w.Peer = kernel.KeyOf(actor.Process, actor.PID), &actor
	}
}

func (a *Agents) remember(socket string, e *end) {
	if len(a.ends) >= maxConnections {
		clear(a.ends)
	}
	a.ends[socket] = e
}

func (a *Agents) tell(now int64, w *wait, depth int) {
	if w.key.Pid != 0 {
		a.attend(now, w, depth+1)
	}
	x := w.Exchange
	if w.Peer != nil {
		actor := *w.Peer
		x.Peer = &actor
	}
	a.kernel.Tell(&x) // sanitizes the name
	if e := a.ends[w.Socket]; e != nil && x.Peer != nil {
		e.name = x.Peer.Name
	}
	if p := a.peers[kernel.ProcessOf(w.key)]; p != nil {
		p.name = x.Peer.Name
		if p.sampled != now { // by another waiter
			p.sampled = now
			a.kernel.Tell(sample(p.key, p.name))
		}
		if now-x.Start >= int64(searchAfter) && now-p.searched >= int64(searchEvery) && p.depth < deepest && !a.search.over() {
			p.searched = now
			a.suspect(now, p)
		}
	}
}

func (a *Agents) attend(now int64, w *wait, depth int) {
	process := kernel.ProcessOf(w.key)
	p := a.peers[process]
	if p == nil {
		if len(a.peers) >= maxPeers || depth > deepest {
			return
		}
		p = &peer{key: w.key, depth: depth, memory: memoryOf(w.key.Pid)}
		if _, already := a.kernel.Depth(process); !already {
			if w.inode != 0 {
				a.kernel.Asked(w.inode)
			}
			if key, ok := a.kernel.Follow(w.key, depth); ok {
				p.key, p.followed, w.key = key, true, key
				w.Peer.Process = kernel.ProcessOf(key)
				if e := a.ends[w.Socket]; e != nil {
					e.actor.Process = w.Peer.Process
				}
			}
		}
		a.peers[kernel.ProcessOf(p.key)] = p
	}
	p.waited = now
}

// suspect is for requests from before the peer was followed: it looks for halted processes that share a stream with
// it.
func (a *Agents) suspect(now int64, p *peer) {
	by := kernel.ProcessOf(p.key)
	found, to := suspectsOf(p.key.Pid, p.looked, &a.search, a.kernel.MayServe, a.kernel.Key)
	p.looked = to
	for _, s := range found {
		socket := standing(s.inodes[0])
		if a.waits[socket] != nil || len(a.waits) >= maxWaits || s.actor.Process == by {
			continue
		}
		w := &wait{
			Exchange: event.Exchange{Process: by, Socket: socket, Network: s.network, Peer: &s.actor, Pending: true},
			key:      kernel.KeyOf(s.actor.Process, s.actor.PID), seen: now, supposed: true,
		}
		all := &end{actor: s.actor}
		for _, inode := range s.inodes {
			a.kernel.Asks(inode)
			a.remember(standing(inode), all)
		}
		a.waits[socket] = w
		a.tell(now, w, p.depth)
	}
}

func (a *Agents) exchanged(x *event.Exchange) {
	if x.Pending {
		return
	}
	a.over(x.Socket)
	if e := a.ends[x.Socket]; e != nil { // it answers again
		for socket, w := range a.waits {
			if w.supposed && w.Process == x.Process && w.Peer.PID == e.actor.PID {
				delete(a.waits, socket)
			}
		}
	}
}

// Introduce names the peer of an exchange if the socket does not.
func (a *Agents) Introduce(x *event.Exchange) {
	if e := a.ends[x.Socket]; e != nil && e.name != "" && (x.Peer == nil || x.Peer.PID != e.actor.PID) {
		known := e.actor
		known.Name = e.name
		x.Peer = &known
	}
}

// over counts ended waits whose peer is local and was not found.
func (a *Agents) over(socket string) {
	if w := a.waits[socket]; w != nil && w.Peer == nil && w.inode != 0 {
		a.unfound.Add(1)
	}
	delete(a.waits, socket)
}

func (a *Agents) abandon(socket, why string) {
	x := a.waits[socket].Exchange
	a.over(socket)
	x.Pending, x.Error = false, why
	a.kernel.Tell(&x)
}

func (a *Agents) gone(x *event.Exit) {
	process := x.Process
	if p := a.peers[process]; p != nil && a.known[process] == nil {
		a.tellKilled(x, p.key, p.name, p.memory)
	}
	for socket, w := range a.waits {
		switch {
		case w.Process == process:
			a.abandon(socket, "closed")
		case w.Peer == nil || w.Peer.Process != process:
		case w.supposed:
			a.abandon(socket, "EOF")
		default:
			w.ended = true
		}
	}
	delete(a.peers, process)
}

func (a *Agents) leavePeers(now int64) {
	for process, p := range a.peers {
		if now-p.waited < int64(Linger) {
			continue
		}
		delete(a.peers, process)
		if known := a.known[process]; known != nil && known.followed {
			continue
		}
		state := sample(p.key, p.name)
		state.Over = true
		a.kernel.Tell(state)
		if p.followed {
			a.kernel.Unfollow(process)
		}
	}
}

// socketOf names a stream as the decoder does: by dialing thread and time, or by inode.
func socketOf(s *kernel.InsideStream) string {
	if s.Dialled != 0 {
		return strconv.FormatUint(uint64(s.Dialler), 10) + "@" + strconv.FormatUint(s.Dialled, 10)
	}
	return standing(s.Ino)
}

func standing(inode uint64) string { return "0@" + strconv.FormatUint(inode, 10) }
