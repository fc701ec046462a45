// Package agents decides which processes that answer plugins are followed, and for how long. The
// kernel side begins to follow one when it accepts a connection of a plugin's tree; here is known
// when to end that, whom to follow beforehand, and who answers where nobody is seen to accept. It
// asks the kernel nothing but what /proc has, and acts through a Follower.
package agents

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// maxAgents bounds the agents that are remembered: a node has one or two.
	maxAgents = 64
	// maxConnections bounds the open connections, as the kernel side's table does, of which one
	// root has a quarter.
	maxConnections = 4096
	// Linger is how long an agent is followed after its last connection: most are called again at once.
	Linger = time.Second
	// sampleAfter is how old a connection is before the agent is asked what it does, and how often then.
	sampleAfter = 50 * time.Millisecond
	// answerWithin is how long to wait for somebody to accept before whoever listens is taken for the agent.
	answerWithin = 50 * time.Millisecond
	// findEvery is how often named agents are looked for: one may have been restarted.
	findEvery = 30 * time.Second
)

// Agents are the processes that plugins call. Create them with New; they are not safe for concurrent use.
type Agents struct {
	// names are globs on programs that are known to serve plugins.
	names []string
	// depth is how far agents are followed.
	depth int
	known map[event.Process]*agent
	// open are the connections that are, by socket.
	open           map[string]*connection
	sampled, found int64
	kernel         Follower

	// waits are the answers that agents wait for, by socket; peers whom they wait for; ends who has the
	// other end of which stream, as far as that was asked.
	waits map[string]*wait
	peers map[event.Process]*peer
	ends  map[string]*end
	// walk finds out who that is; search is the time that there is for finding who stands still.
	walk   *walk
	search search
	// unfound counts the waits whose other end was not found before they ended.
	unfound *atomic.Uint64
}

// Follower is how the kernel side is told whom to follow, and how events leave.
type Follower interface {
	// Tell delivers an event.
	Tell(event.Body)
	// Follow sees to it that an agent is followed at that depth, and returns as whom: it may
	// be already. With depth 0 it only asks. False: it is not followed.
	Follow(agent kernel.Key, depth int) (kernel.Key, bool)
	// Watch has the programs remembered that an agent runs while it is not followed; Habits are those.
	Watch(agent kernel.Key)
	Habits(agent kernel.Key) []string
	// Unfollow ends that. What the agent started is followed until it is over.
	Unfollow(event.Process)
	// Key is that of the process that has this number in our PID namespace. False: there is none.
	Key(pid uint32) (kernel.Key, bool)
	// MayServe reports whether a process may be followed at all.
	MayServe(pid uint32) bool
	// Waiting lists the streams of followed processes that wrote to them before that time and have not
	// read since (Wrote is set); and those that they wrote to, and then read from before that time for the last time.
	Waiting(before int64) []kernel.InsideStream
	// Asked says that on the socket with that inode whoever is followed is asked, and does not ask;
	// Asks, that it may be waiting there.
	Asked(inode uint64)
	Asks(inode uint64)
	// Depth is how far a process is from a plugin: 0 in one's tree, 1 in that of an agent
	// that plugins call. False: nobody follows it.
	Depth(event.Process) (int, bool)
}

// agent is one of them.
type agent struct {
	key         kernel.Key
	name        string
	depth       int
	connections int   // that are open
	idle        int64 // since when there is none
	followed    bool
	memory      memory
}

// connection is one to an agent.
type connection struct {
	client event.Process // empty until it is known
	agent  event.Process // empty until it is known
	// accepted: the agent is who answered, not only who listens.
	accepted bool
	// listener may be the agent, where nobody was seen to accept.
	listener *event.Actor
	since    int64
}

// New returns agents that are followed up to that depth (0: not at all), among them, from the
// beginning of a call on, those whose programs match the globs (path.Match, on 15 bytes).
// unfound counts the waits of agents for a process that was not found.
func New(names []string, depth int, kernel Follower, unfound *atomic.Uint64) *Agents {
	return &Agents{
		names: names, depth: depth, kernel: kernel, known: map[event.Process]*agent{}, open: map[string]*connection{},
		waits: map[string]*wait{}, peers: map[event.Process]*peer{}, ends: map[string]*end{},
		walk: newWalk(), search: search{clock: time.Now, pids: procfs.All}, unfound: unfound,
	}
}

// Note takes the next event: who connects, accepts, hangs up, or exits.
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
	case *event.Accept: // over loopback it comes before connect returns
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
		if known := a.known[b.Process]; known != nil {
			a.tellKilled(b, known.key, known.name, known.memory)
			delete(a.known, b.Process)
		}
		a.gone(b)
	case *event.Exchange:
		a.exchanged(b)
	}
}

// Following reports whether any process is followed as an agent, or because one waits for it.
func (a *Agents) Following() bool {
	for _, known := range a.known {
		if known.followed {
			return true
		}
	}
	return len(a.peers) > 0
}

// called is since when an agent answers the oldest of the calls that it answers.
func (a *Agents) called(process event.Process) int64 {
	first := int64(math.MaxInt64)
	for _, c := range a.open {
		if c.agent == process {
			first = min(first, c.since)
		}
	}
	return first
}

// Client is the process that connected a socket; empty if that is not known.
func (a *Agents) Client(socket string) event.Process {
	if c := a.open[socket]; c != nil {
		return c.client
	}
	return ""
}

// connection finds or makes one; nil beyond the limit.
func (a *Agents) connection(now int64, socket string) *connection {
	c := a.open[socket]
	if c == nil && len(a.open) < maxConnections {
		c = &connection{since: now}
		a.open[socket] = c
	}
	return c
}

// answered notes which agent answers a connection. The kernel side follows whoever it saw accept, if
// that is to be (depth 0); who only listens it is told to follow.
func (a *Agents) answered(now int64, c *connection, actor event.Actor, depth int) {
	if actor.Process == "" || actor.Process == c.agent {
		return
	}
	a.release(now, c)
	key, ok := a.kernel.Follow(kernel.KeyOf(actor.Process, actor.PID), depth)
	if !ok {
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

// learn remembers an agent; nil beyond the limit. Who is called takes the place of one that may
// be. What was found in /proc has a key that is exact to a tick only: it is not known twice.
func (a *Agents) learn(key kernel.Key, name string) *agent {
	process := kernel.ProcessOf(key)
	if known := a.known[process]; known != nil {
		return known
	}
	for other, known := range a.known {
		if known.key.Pid == key.Pid || !known.followed && len(a.known) >= maxAgents {
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

// Adopt takes over an agent that the kernel side follows though nobody was told who calls it: the record of
// that was lost, or it was one connection too many. Unless somebody calls it, it is let go of after Linger.
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

// hangUp ends the connection of a socket.
func (a *Agents) hangUp(now int64, socket string) {
	if c := a.open[socket]; c != nil {
		delete(a.open, socket)
		a.release(now, c)
	}
}

// release takes a connection from its agent.
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

// Expect follows the agents that are known before anybody connects to them. Call it when a call
// of CNI begins.
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
			delete(a.known, process)
			continue
		}
		key, ok := a.kernel.Follow(known.key, max(1, known.depth))
		if !ok {
			continue
		}
		if key != known.key { // it just answered, and the kernel calls it otherwise
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

// Tend ends what is over and samples the agents that are being asked.
func (a *Agents) Tend(now int64) {
	sample := now-a.sampled >= int64(sampleAfter)
	asked := map[event.Process]bool{}
	for socket, c := range a.open {
		age := now - c.since
		depth, tracked := a.kernel.Depth(c.client)
		switch {
		case c.client != "" && !tracked, c.client == "" && age > int64(Linger): // its end, or its beginning, was lost
			a.hangUp(now, socket)
		case c.agent == "" && !c.accepted && c.listener != nil && age >= int64(answerWithin):
			a.listens(now, socket, c, depth)
		case sample && age >= int64(sampleAfter) && !asked[c.agent]:
			if known := a.known[c.agent]; known != nil {
				asked[c.agent] = true
				a.kernel.Tell(known.state())
			}
		}
	}
	if sample {
		a.sampled = now
		if len(asked)+len(a.waits) > 0 {
			a.look(now)
		}
		a.leavePeers(now)
	}
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

// listens takes who listens for the agent: it accepts in a way that is not seen, or is too busy to. Under
// socket activation that is the first process of the system, which serves nobody.
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

// Find looks for the agents that are known by name.
func (a *Agents) Find(now int64) {
	a.found = now
	if len(a.names) == 0 || a.depth == 0 {
		return
	}
	pids, _ := procfs.All()
	for _, n := range pids {
		pid := uint32(n)
		name := Program(pid)
		if !matches(a.names, name) || !a.kernel.MayServe(pid) { // anybody may be called anything
			continue
		}
		if key, ok := a.kernel.Key(pid); ok && !a.knows(pid) {
			a.learn(key, name)
		}
	}
}

// state samples what an agent does.
func (k *agent) state() *event.Agent {
	return sample(k.key, k.name)
}

// Alive reports whether a process is still there, and its first thread has not ended.
func Alive(key kernel.Key) bool { return procfs.Alive(int(key.Pid), int64(key.Start)) }
