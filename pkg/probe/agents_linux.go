package probe

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// maxAgents is how many servers are remembered: a node has one or two.
	maxAgents = 64
	// maxAgentCalls is how many connections are: as many as the kernel side's table has, of
	// which one root has a quarter.
	maxAgentCalls = 4096
	// leave is how long a server is followed after its last call: most are called again at
	// once.
	leave = time.Second
	// sampleAfter is how old a call is before the server is asked what it does, and how
	// often then.
	sampleAfter = 100 * time.Millisecond
	// answerWithin is when whoever accepted is known; after it who listens is taken.
	answerWithin = 50 * time.Millisecond
	// findEvery is how often servers that are named are looked for: one may be started anew.
	findEvery = 30 * time.Second
)

// agents are the servers that plugins call. The kernel side begins to follow one when it
// accepts a connection; here is known when to end that, and who to follow beforehand.
type agents struct {
	// names are globs on programs that are known to serve plugins.
	names []string
	// depth is how far servers are followed.
	depth int
	known map[event.Process]*agent
	// calls are the connections that are open, by socket.
	calls          map[string]*agentCall
	sampled, found int64
	kernel         follower
}

// follower is how the kernel side is told, and how events leave.
type follower interface {
	// tell delivers an event.
	tell(event.Body)
	// follow sees to it that a server is followed at that depth, and returns as whom: it may
	// be already. With depth 0 it only asks. False: it is not followed.
	follow(server taskKey, depth int) (taskKey, bool)
	unfollow(event.Process)
	// mayServe tells whether a process may be followed at all.
	mayServe(pid uint32) bool
	// depthOf is how far a process is from a plugin: 0 in one's tree, 1 in that of a server
	// that plugins call. False: nobody follows it.
	depthOf(event.Process) (int, bool)
}

// agent is a server.
type agent struct {
	key      taskKey
	name     string
	depth    int
	calls    int
	idle     int64 // since when nobody calls it
	followed bool
}

// agentCall is a connection to a server.
type agentCall struct {
	client event.Process // empty until it is known
	server event.Process // empty until it is known
	// accepted: the server is who answered, not only who listens.
	accepted bool
	// listener may be the server, where nobody was seen to accept.
	listener *event.Holder
	since    int64
}

func newAgents(names []string, depth int, kernel follower) *agents {
	return &agents{names: names, depth: depth, kernel: kernel, known: map[event.Process]*agent{}, calls: map[string]*agentCall{}}
}

// note keeps the connections current.
func (a *agents) note(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Connect:
		if b.Error != "" {
			a.end(e.Time, b.Socket)
			return
		}
		if c := a.call(e.Time, b.Socket); c != nil {
			c.client, c.listener = b.Process, b.Listener
		}
	case *event.Accept: // over loopback it comes before connect returns
		if c := a.call(e.Time, b.Socket); c != nil && !c.accepted {
			c.accepted = true
			a.answered(e.Time, c, b.Server, 0)
		}
	case *event.Close:
		a.end(e.Time, b.Socket)
	case *event.Exit:
		for socket, c := range a.calls {
			if c.client == b.Process {
				a.end(e.Time, socket)
			}
		}
		delete(a.known, b.Process)
	}
}

// call finds or makes a connection; nil beyond the limit.
func (a *agents) call(now int64, socket string) *agentCall {
	c := a.calls[socket]
	if c == nil && len(a.calls) < maxAgentCalls {
		c = &agentCall{since: now}
		a.calls[socket] = c
	}
	return c
}

// answered says who serves a connection. The kernel side follows whoever it saw accept, if
// that is to be (depth 0); who only listens it is told to.
func (a *agents) answered(now int64, c *agentCall, server event.Holder, depth int) {
	if server.Process == "" || server.Process == c.server {
		return
	}
	a.release(now, c)
	key, ok := a.kernel.follow(keyOf(server.Process, server.PID), depth)
	if !ok {
		return
	}
	known := a.learn(key, server.Name)
	if known == nil {
		a.kernel.unfollow(processKey(key))
		return
	}
	c.server = processKey(key)
	known.calls++
	known.followed = true
	known.depth, _ = a.kernel.depthOf(c.server)
	a.kernel.tell(known.state())
}

// learn remembers a server; nil beyond the limit. Who is called takes the place of one that may
// be. What was found in /proc has a key that is exact to a tick only: it is not known twice.
func (a *agents) learn(key taskKey, name string) *agent {
	process := processKey(key)
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
	return known
}

// adopt takes a server that the kernel side follows though nobody was told who calls it: the
// record of that was lost, or it was one connection too many. Unless somebody calls it, it is
// left again.
func (a *agents) adopt(now int64, key taskKey) {
	process := processKey(key)
	if known := a.known[process]; known != nil && known.followed {
		return
	}
	key, ok := a.kernel.follow(key, 0)
	if !ok {
		return
	}
	known := a.learn(key, program(key.Pid))
	if known == nil {
		a.kernel.unfollow(process)
		return
	}
	known.followed, known.idle = true, now
	known.depth, _ = a.kernel.depthOf(process)
	a.kernel.tell(known.state())
}

func (a *agents) end(now int64, socket string) {
	if c := a.calls[socket]; c != nil {
		delete(a.calls, socket)
		a.release(now, c)
	}
}

// release takes a call from its server.
func (a *agents) release(now int64, c *agentCall) {
	known := a.known[c.server]
	c.server = ""
	if known == nil {
		return
	}
	known.calls--
	known.idle = now
	a.kernel.tell(known.state())
}

// expect follows the servers that are known before anybody calls them: a call of CNI has
// begun.
func (a *agents) expect(now int64) {
	if a.depth == 0 {
		return
	}
	if now-a.found >= int64(findEvery) {
		a.find(now)
	}
	for process, known := range a.known {
		known.idle = now
		if known.followed {
			continue
		}
		if !alive(known.key) {
			delete(a.known, process)
			continue
		}
		key, ok := a.kernel.follow(known.key, max(1, known.depth))
		if !ok {
			continue
		}
		if key != known.key { // it just answered, and the kernel calls it otherwise
			delete(a.known, process)
			known.key = key
			a.known[processKey(key)] = known
		}
		known.followed = true
		a.kernel.tell(known.state())
	}
}

// tend ends what is over and asks who is called what it does.
func (a *agents) tend(now int64) {
	sample := now-a.sampled >= int64(sampleAfter)
	asked := map[event.Process]bool{}
	for socket, c := range a.calls {
		age := now - c.since
		depth, tracked := a.kernel.depthOf(c.client)
		switch {
		case c.client != "" && !tracked, c.client == "" && age > int64(leave): // its end, or its beginning, was lost
			a.end(now, socket)
		case c.server == "" && !c.accepted && c.listener != nil && age >= int64(answerWithin):
			a.listens(now, socket, c, depth)
		case sample && age >= int64(sampleAfter) && !asked[c.server]:
			if known := a.known[c.server]; known != nil {
				asked[c.server] = true
				a.kernel.tell(known.state())
			}
		}
	}
	if sample {
		a.sampled = now
	}
	for process, known := range a.known {
		if !known.followed || known.calls > 0 || now-known.idle < int64(leave) {
			continue
		}
		known.followed = false
		state := known.state()
		state.Over = true
		a.kernel.tell(state)
		a.kernel.unfollow(process)
	}
}

// listens takes who listens for the server: it accepts in a way that is not seen, or is too
// busy to. Under socket activation that is the first process of the system, which serves
// nobody.
func (a *agents) listens(now int64, socket string, c *agentCall, depth int) {
	l := *c.listener
	c.listener = nil
	if l.Process == "" && l.PID > 1 {
		l.Process = processOf(l.PID)
	}
	if l.Process == "" || l.PID == 1 || depth >= a.depth {
		return
	}
	a.answered(now, c, l, depth+1)
	if c.server != "" {
		l.Process = c.server
		a.kernel.tell(&event.Accept{Socket: socket, Server: l, Listens: true})
	}
}

// find looks for the servers that are known by name.
func (a *agents) find(now int64) {
	a.found = now
	if len(a.names) == 0 || a.depth == 0 {
		return
	}
	for pid := range processes() {
		name := program(pid)
		if !matches(a.names, name) || !a.kernel.mayServe(pid) { // anybody may be called anything
			continue
		}
		if key := processOf(pid); key != "" && !a.knows(pid) {
			a.learn(keyOf(key, pid), name)
		}
	}
}

func (a *agents) knows(pid uint32) bool {
	for _, known := range a.known {
		if known.key.Pid == pid {
			return true
		}
	}
	return false
}
