// Package agents decides which agents are followed, and for how long. The kernel side begins when an agent accepts a
// plugin's connection.
package agents

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	maxAgents = 64
	// maxConnections is as in the kernel side.
	maxConnections = 4096
	// Linger is how long an agent is followed after its last connection.
	Linger = time.Second
	// sampleAfter is a connection's age when its agent is first sampled, and the interval.
	sampleAfter = 50 * time.Millisecond
	// answerWithin is the time to accept, before the listener is taken for the agent.
	answerWithin = 50 * time.Millisecond
	// findEvery finds named agents that restarted.
	findEvery = 30 * time.Second
)

// Agents are the processes that plugins call. They are not safe for concurrent use.
type Agents struct {
	names          []string
	depth          int
	known          map[event.Process]*agent
	open           map[string]*connection
	sampled, found int64
	kernel         Follower

	// waits and ends are by socket. Agents wait for peers.
	waits     map[string]*wait
	peers     map[event.Process]*peer
	ends      map[string]*end
	walk      *walk
	search    search
	unfound   *atomic.Uint64
	Functions *functions.Stacks
}

// Follower controls the kernel side.
type Follower interface {
	Tell(event.Body)
	// Follow returns the agent's exact key; false if it is not followed. Depth 0 only asks.
	Follow(agent kernel.Key, depth int) (kernel.Key, bool)
	// Watch records an unfollowed agent's programs; Habits returns them.
	Watch(agent kernel.Key)
	Habits(agent kernel.Key) []string
	// Unfollow leaves descendants followed until they exit.
	Unfollow(event.Process)
	// Key takes a PID of our namespace; false if there is no process.
	Key(pid uint32) (kernel.Key, bool)
	MayServe(pid uint32) bool
	// Waiting returns followed processes' streams that they wrote to before that time and have not read since (Wrote
	// is set), or last read before it.
	Waiting(before int64) []kernel.InsideStream
	// Asked: the followed process answers on that socket. Asks: it may wait there.
	Asked(inode uint64)
	Asks(inode uint64)
	// Depth is 0 in a plugin's tree, 1 in that of a plugin's agent; false if unfollowed.
	Depth(event.Process) (int, bool)
}

type agent struct {
	key         kernel.Key
	name        string
	depth       int
	connections int
	idle        int64 // time since which it has no connection
	followed    bool
	memory      memory
	watch       *watch
}

type connection struct {
	client event.Process
	agent  event.Process
	// the agent answered, and does not only listen
	accepted bool
	beyond   *agent // unfollowed
	// the possible agent, if no accept was seen
	listener *event.Actor
	since    int64
	look     int // of a slow one's agent
	shared   bool
}

// New follows agents up to depth (0: none), and from a call's start those that match the globs (path.Match, 15
// bytes). unfound counts waits for unknown processes.
func New(names []string, depth int, kernel Follower, unfound *atomic.Uint64) *Agents {
	return &Agents{
		names: names, depth: depth, kernel: kernel, known: map[event.Process]*agent{}, open: map[string]*connection{},
		waits: map[string]*wait{}, peers: map[event.Process]*peer{}, ends: map[string]*end{},
		walk: newWalk(), search: search{clock: time.Now, pids: procfs.All}, unfound: unfound,
	}
}

// Note takes the next event.
func (a *Agents) Note(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Connect:
		if b.Error != "" {
			a.hangUp(e.Time, b.Socket)
			return
		}
		if c := a.connection(e.Time, b.Socket); c != nil {
			c.client, c.listener = b.Process, b.Listener
		}
	case *event.Accept: // over loopback it precedes connect's return
		if c := a.connection(e.Time, b.Socket); c != nil && !c.accepted {
			c.accepted = true
			a.answered(e.Time, c, b.Agent, 0)
		}
	case *event.Close:
		a.hangUp(e.Time, b.Socket)
	case *event.Exit:
		for socket, c := range a.open {
			if c.client == b.Process {
				a.hangUp(e.Time, socket)
			}
		}
		a.gone(b)
		if known := a.known[b.Process]; known != nil {
			a.tellKilled(b, known.key, known.name, known.memory)
			known.unwatch()
			delete(a.known, b.Process)
		}
	case *event.Exchange:
		a.exchanged(b)
	}
}

// Following reports whether any agent or peer is followed.
func (a *Agents) Following() bool {
	for _, known := range a.known {
		if known.followed {
			return true
		}
	}
	return len(a.peers) > 0
}

func (a *Agents) called(process event.Process) int64 {
	first := int64(math.MaxInt64)
	for _, c := range a.open {
		if c.agent == process {
			first = min(first, c.since)
		}
	}
	return first
}

// Client returns the process that connected a socket; may be empty.
func (a *Agents) Client(socket string) event.Process {
	if c := a.open[socket]; c != nil {
		return c.client
	}
	return ""
}

func (a *Agents) connection(now int64, socket string) *connection {
	c := a.open[socket]
	if c == nil && len(a.open) < maxConnections {
		c = &connection{since: now}
		a.open[socket] = c
	}
	return c
}

// answered notes a connection's agent. Depth 0: the kernel side saw the accept, and follows the agent if allowed.
func (a *Agents) answered(now int64, c *connection, actor event.Actor, depth int) {
	if actor.Process == "" || actor.Process == c.agent {
		return
	}
	a.release(now, c)
	key, ok := a.kernel.Follow(kernel.KeyOf(actor.Process, actor.PID), depth)
	if !ok {
		if c.accepted {
			c.beyond = &agent{key: key, name: actor.Name}
		}
		return
	}
	known := a.learn(key, actor.Name)
	if known == nil {
		a.kernel.Unfollow(kernel.ProcessOf(key))
		return
	}
	c.agent = kernel.ProcessOf(key)
	known.connections++
	if !known.followed {
		known.followed, known.memory = true, memoryOf(key.Pid)
	}
	known.depth, _ = a.kernel.Depth(c.agent)
	a.kernel.Tell(known.state())
}

// learn returns nil beyond the limit. Keys from /proc are exact only to a tick, so a PID is kept once.
func (a *Agents) learn(key kernel.Key, name string) *agent {
	process := kernel.ProcessOf(key)
	if known := a.known[process]; known != nil {
		return known
	}
	for other, known := range a.known {
		if known.key.Pid == key.Pid || !known.followed && len(a.known) >= maxAgents {
			known.unwatch()
			delete(a.known, other)
		}
	}
	if len(a.known) >= maxAgents {
		return nil
	}
	known := &agent{key: key, name: name}
	a.known[process] = known
	a.kernel.Watch(key)
	return known
}

// Adopt takes over an agent that the kernel side follows, but whose connection was lost or beyond the limit, for
// Linger.
func (a *Agents) Adopt(now int64, key kernel.Key) {
	process := kernel.ProcessOf(key)
	if known := a.known[process]; known != nil && known.followed {
		return
	}
	key, ok := a.kernel.Follow(key, 0)
	if !ok {
		return
	}
	known := a.learn(key, Program(key.Pid))
	if known == nil {
		a.kernel.Unfollow(process)
		return
	}
	known.followed, known.idle, known.memory = true, now, memoryOf(key.Pid)
	known.depth, _ = a.kernel.Depth(process)
	a.kernel.Tell(known.state())
}

func (a *Agents) hangUp(now int64, socket string) {
	if c := a.open[socket]; c != nil {
		delete(a.open, socket)
		a.wasSlow(socket, c)
		a.release(now, c)
	}
}

func (a *Agents) release(now int64, c *connection) {
	known := a.known[c.agent]
	c.agent = ""
	if known == nil {
		return
	}
	known.connections--
	known.idle = now
	a.kernel.Tell(known.state())
}

// Expect follows known agents at a CNI call's start.
func (a *Agents) Expect(now int64) {
	if a.depth == 0 {
		return
	}
	if now-a.found >= int64(findEvery) {
		a.Find(now)
	}
	for process, known := range a.known {
		known.idle = now
		if known.followed {
			continue
		}
		if !Alive(known.key) {
			known.unwatch()
			delete(a.known, process)
			continue
		}
		key, ok := a.kernel.Follow(known.key, max(1, known.depth))
		if !ok {
			continue
		}
		if key != known.key { // it just answered, with an exact key
			delete(a.known, process)
			known.key = key
			a.known[kernel.ProcessOf(key)] = known
		}
		known.followed, known.memory = true, memoryOf(known.key.Pid)
		state := known.state()
		state.Programs = a.kernel.Habits(key)
		a.kernel.Tell(state)
	}
}

// Tend ends what expired, and samples agents in use.
func (a *Agents) Tend(now int64) {
	sample := now-a.sampled >= int64(sampleAfter)
	asked, slow := map[event.Process]bool{}, map[*agent]bool{}
	for socket, c := range a.open {
		age := now - c.since
		depth, tracked := a.kernel.Depth(c.client)
		switch {
		case c.client != "" && !tracked, c.client == "" && age > int64(Linger): // lost end or start
			a.hangUp(now, socket)
		case c.agent == "" && !c.accepted && c.listener != nil && age >= int64(answerWithin):
			a.listens(now, socket, c, depth)
		case sample && age >= int64(sampleAfter):
			known := a.known[c.agent]
			who := cmp.Or(known, c.beyond)
			if who != nil && !asked[kernel.ProcessOf(who.key)] && (known != nil || a.maySample(who, len(asked))) {
				asked[kernel.ProcessOf(who.key)] = true
				a.kernel.Tell(who.state())
			}
			if known != nil && age >= int64(functions.WatchAfter) {
				a.slow(now, known, c)
				slow[known] = true
			}
		}
	}
	if sample {
		a.sampled = now
		if len(asked)+len(a.waits) > 0 {
			a.look(now)
		}
		a.leavePeers(now)
		for _, known := range a.known {
			a.lookOn(now, known, slow[known])
		}
	}
	a.rest(now)
}

func (a *Agents) maySample(who *agent, asked int) bool {
	return a.depth > 0 && asked < maxPeers && a.kernel.MayServe(who.key.Pid)
}

func (a *Agents) rest(now int64) {
	for process, known := range a.known {
		if !known.followed || known.connections > 0 || now-known.idle < int64(Linger) {
			continue
		}
		known.followed = false
		state := known.state()
		state.Over = true
		a.kernel.Tell(state)
		a.kernel.Unfollow(process)
	}
}

func (a *Agents) listens(now int64, socket string, c *connection, depth int) {
	l := *c.listener
	c.listener = nil
	if l.Process == "" && l.PID > 1 {
		if key, ok := a.kernel.Key(l.PID); ok {
			l.Process = kernel.ProcessOf(key)
		}
	}
	if l.Process == "" || l.PID == 1 || depth >= a.depth {
		return
	}
	a.answered(now, c, l, depth+1)
	if c.agent != "" {
		l.Process = c.agent
		a.kernel.Tell(&event.Accept{Socket: socket, Agent: l, Listens: true})
	}
}

// Find looks for agents by name.
func (a *Agents) Find(now int64) {
	a.found = now
	if len(a.names) == 0 || a.depth == 0 {
		return
	}
	pids, _ := procfs.All()
	for _, n := range pids {
		pid := uint32(n)
		name := Program(pid)
		if !matches(a.names, name) || !a.kernel.MayServe(pid) { // names can be faked
			continue
		}
		if key, ok := a.kernel.Key(pid); ok && !a.knows(pid) {
			a.learn(key, name)
		}
	}
}

func (k *agent) state() *event.Agent {
	return sample(k.key, k.name)
}

// Alive reports whether a process exists, and its first thread has not ended.
func Alive(key kernel.Key) bool { return procfs.Alive(int(key.Pid), int64(key.Start)) }
