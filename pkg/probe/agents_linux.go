package probe

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// maxAgents is how many servers are remembered: a node has one or two.
	maxAgents = 64
	// leave is how long a server is followed after its last call: most are called again at
	// once.
	leave = time.Second
	// sampleAfter is how old a call is before the server is asked what it does, and how
	// often then.
	sampleAfter = 100 * time.Millisecond
	// answerWithin is when whoever accepted is known; after it who listens is taken.
	answerWithin = 50 * time.Millisecond
)

func newAgents(names []string, tell func(*event.Agent), follow func(taskKey), unfollow func(event.Process)) *agents {
	return &agents{
		names: names, known: map[event.Process]*agent{}, calls: map[string]*agentCall{},
		tell: tell, follow: follow, unfollow: unfollow,
	}
}

// agents are the servers that plugins call. The kernel side begins to follow one when it
// accepts a connection; here is known when to end that, and who to follow beforehand.
type agents struct {
	// names are globs on programs that are known to serve plugins.
	names []string
	known map[event.Process]*agent
	// calls are the connections that are open, by socket.
	calls   map[string]*agentCall
	sampled int64
	// tell and follow are how events leave and how the kernel side is told.
	tell     func(*event.Agent)
	follow   func(taskKey)
	unfollow func(event.Process)
}

// agent is a server.
type agent struct {
	key      taskKey
	name     string
	calls    int
	idle     int64 // since when nobody calls it
	followed bool
}

// agentCall is a connection to a server.
type agentCall struct {
	client event.Process
	server event.Process // empty until it is known
	// listener may be the server, where nobody was seen to accept.
	listener *event.Holder
	since    int64
}

// note keeps the connections current.
func (a *agents) note(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Connect:
		switch {
		case b.Error != "":
			delete(a.calls, b.Socket)
		case len(a.calls) < 16*maxAgents && a.calls[b.Socket] == nil:
			a.calls[b.Socket] = &agentCall{client: b.Process, listener: b.Listener, since: e.Time}
		}
		if c := a.calls[b.Socket]; c != nil {
			c.listener = b.Listener
		}
	case *event.Accept:
		c := a.calls[b.Socket]
		if c == nil { // over loopback the answer comes before connect returns
			c = &agentCall{since: e.Time}
			a.calls[b.Socket] = c
		}
		a.answered(c, b.Server)
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

// answered says who serves a connection.
func (a *agents) answered(c *agentCall, server event.Holder) {
	if c.server != "" || server.Process == "" {
		return
	}
	known := a.known[server.Process]
	if known == nil {
		if len(a.known) >= maxAgents {
			return
		}
		known = &agent{key: keyOf(server.Process, server.PID), name: server.Name}
		a.known[server.Process] = known
	}
	c.server = server.Process
	known.calls++
	if !known.followed {
		known.followed = true
		a.follow(known.key) // the kernel side did, unless only the listener is known
	}
	a.tell(known.state())
}

func (a *agents) end(now int64, socket string) {
	c := a.calls[socket]
	delete(a.calls, socket)
	if c == nil {
		return
	}
	if known := a.known[c.server]; known != nil {
		known.calls--
		known.idle = now
		a.tell(known.state())
	}
}

// expect follows the servers that are known before anybody calls them: a call of CNI has
// begun.
func (a *agents) expect(now int64) {
	for _, known := range a.known {
		known.idle = now
		if !known.followed {
			known.followed = true
			a.follow(known.key)
			a.tell(known.state())
		}
	}
}

// tend ends what is over and asks who is called what it does.
func (a *agents) tend(now int64, tracking func(event.Process) bool) {
	sample := now-a.sampled >= int64(sampleAfter)
	asked := map[event.Process]bool{}
	for socket, c := range a.calls {
		age := now - c.since
		switch {
		case c.client != "" && !tracking(c.client):
			a.end(now, socket)
		case c.server == "" && c.listener != nil && age >= int64(answerWithin):
			if c.listener.Process == "" {
				c.listener.Process = processOf(c.listener.PID)
			}
			a.answered(c, *c.listener)
			c.listener = nil
		case sample && age >= int64(sampleAfter) && !asked[c.server]:
			if known := a.known[c.server]; known != nil {
				asked[c.server] = true
				a.tell(known.state())
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
		a.tell(state)
		a.unfollow(process)
	}
}

// find looks for the servers that are known by name.
func (a *agents) find() {
	if len(a.names) == 0 {
		return
	}
	for pid := range processes() {
		name := program(pid)
		if !a.named(name) || len(a.known) >= maxAgents {
			continue
		}
		if key := processOf(pid); key != "" && a.known[key] == nil {
			a.known[key] = &agent{key: keyOf(key, pid), name: name}
		}
	}
}

func (a *agents) named(name string) bool {
	for _, pattern := range a.names {
		// The kernel keeps 15 bytes of a name.
		if ok, err := path.Match(pattern[:min(len(pattern), 15)], name); ok && err == nil {
			return true
		}
	}
	return false
}

// state asks the kernel how a server does.
func (k *agent) state() *event.Agent {
	s := &event.Agent{Process: processKey(k.key), PID: k.key.Pid, Name: k.name}
	dir := fmt.Sprintf("/proc/%d/", k.key.Pid)
	if stat, err := os.ReadFile(dir + "stat"); err == nil {
		s.CPU = cpuOf(string(stat))
	}
	if channel, err := os.ReadFile(dir + "wchan"); err == nil && string(channel) != "0" {
		s.Channel = string(channel)
	}
	return s
}

// cpuOf reads what a process consumed from /proc/PID/stat: fields 14 and 15 (proc(5)).
func cpuOf(stat string) int64 {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return (user + system) * (1e9 / ticksPerSecond)
}

// processOf is the key of a process, exact to a tick, as /proc has it; empty if it is
// gone.
func processOf(pid uint32) event.Process {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, start, ok := parseStat(string(stat))
	if !ok {
		return ""
	}
	return processKey(taskKey{Tgid: pid, Start: start, Pid: pid})
}

// keyOf takes a key apart again.
func keyOf(process event.Process, pid uint32) taskKey {
	number, start, _ := strings.Cut(string(process), "@")
	n, _ := strconv.ParseUint(number, 10, 32)
	at, _ := strconv.ParseUint(start, 10, 64)
	return taskKey{Tgid: uint32(n), Start: at, Pid: pid}
}
