package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// Evidence is what says that something a server did, it did for a call.
type Evidence string

// The evidence there can be.
const (
	// Certain: it mentions the container, the pod, its namespace, interface or address.
	Certain Evidence = "certain"
	// Candidate: it was done while the server was called, which proves nothing.
	Candidate Evidence = "candidate"
)

// Work is what a server did while a call had a connection to it. Neither image is a
// process of the call: their children and their insides are what was done.
type Work struct {
	// Own was done for this call: certainly, or as far as is known since it was the only
	// one that had the server's attention.
	Own *Image
	// Shared was done while others called the server, too, or is what the server does all
	// the time: nobody knows for whom. It is drawn at one of the calls.
	Shared *Image
	// CPU is how long the server itself ran (ns), to a tick of 10 ms; Channel what it
	// waited in when it was asked.
	CPU     int64
	Channel string
	// Gone is when the server ended though it was still called; 0 if it did not.
	Gone int64

	agent       *agent
	cpu         int64 // of the server when it was called
	known       bool  // cpu is
	own, shared *process
}

// agent is a server that has connections to runs of open operations.
type agent struct {
	calls  []*Connection // that are open, in order of their start
	recent []*Connection // that were closed lately
	// periodic are the programs it was seen to run while nobody called it.
	periodic map[string]bool
}

const (
	// recentMax is how many connections to a server are remembered that are closed: what
	// it does at the end of a call may be told after that.
	recentMax = 16
	// periodicMax is how many programs of a server are remembered.
	periodicMax = 64
)

// serving takes that a connection has been answered: from now on what the server does may
// be done for it.
func (t *Timeline) serving(c *Connection) {
	p := t.processes[c.by]
	if c.Server == nil || c.Server.Process == "" || c.Work != nil || p == nil || p.run == nil {
		return
	}
	a := t.agents[c.Server.Process]
	if a == nil {
		if len(t.agents) >= t.options.Operations {
			return
		}
		a = &agent{periodic: map[string]bool{}}
		t.agents[c.Server.Process] = a
	}
	image := func() *Image {
		return &Image{PID: c.Server.PID, Process: c.Server.Process, Name: c.Server.Name, Start: c.Start, End: c.Start, Ended: true}
	}
	c.Work = &Work{agent: a, Own: image(), Shared: image()}
	worker := func(im *Image) *process {
		return &process{op: p.op, up: im, image: im, run: p.run, call: p.call}
	}
	c.Work.own, c.Work.shared = worker(c.Work.Own), worker(c.Work.Shared)
	a.calls = append(a.calls, c)
}

// served takes the end of a connection.
func (c *Connection) served() {
	if c.Work == nil {
		return
	}
	c.Work.Own.End, c.Work.Shared.End = c.End, c.End
	a := c.Work.agent
	if i := slices.Index(a.calls, c); i >= 0 {
		a.calls = slices.Delete(a.calls, i, i+1)
		if len(a.recent) >= recentMax {
			a.recent = slices.Delete(a.recent, 0, 1)
		}
		a.recent = append(a.recent, c)
	}
}

// agentState takes how a server does.
func (t *Timeline) agentState(b *event.Agent) {
	a := t.agents[b.Process]
	if a == nil {
		if !b.Over && len(t.agents) < t.options.Operations {
			t.agents[b.Process] = &agent{periodic: map[string]bool{}}
		}
		return
	}
	for _, c := range slices.Concat(a.calls, a.recent) {
		w := c.Work
		if !w.known {
			w.cpu, w.known = b.CPU, true
		}
		if c.open || w.CPU == 0 {
			w.CPU = max(0, b.CPU-w.cpu)
		}
		if c.open && b.Channel != "" {
			w.Channel = b.Channel
		}
	}
	if b.Over && len(a.calls) == 0 {
		a.recent = nil
	}
}

// attribute finds for which connection a server did something. others are the calls it may
// have been done for as well.
func (a *agent) attribute(mentions []string) (c *Connection, evidence Evidence, others []Key) {
	if len(mentions) > 0 {
		named := func(c *Connection) bool { return slices.Contains(mentions, c.Work.own.op.ContainerID) }
		from := a.calls
		if !slices.ContainsFunc(from, named) {
			from = a.recent
		}
		var found []*Connection
		for _, c := range from {
			if named(c) && c.Work.own.op.Closed == "" {
				found = append(found, c)
			}
		}
		switch {
		case len(found) == 0:
			return nil, "", nil
		case len(mentions) == 1:
			return found[len(found)-1], Certain, nil
		}
		return found[0], Candidate, keysOf(found[1:])
	}
	if len(a.calls) == 0 {
		return nil, "", nil
	}
	return a.calls[0], Candidate, keysOf(a.calls[1:])
}

func keysOf(calls []*Connection) (keys []Key) {
	for _, c := range calls {
		if key := c.Work.own.op.keyOf(c.Work.own.call); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// work is a program that a server runs, or a descendant of one. It returns the process
// that it is to be, nil if it is done for no call; false if no server runs it.
func (t *Timeline) work(e *event.Exec) (*process, bool) {
	a := t.helpers[e.Process]
	if a == nil {
		if a = t.agents[e.Parent]; a == nil {
			a = t.helpers[e.Parent]
		}
	}
	if a == nil {
		return nil, false
	}
	c, evidence, others := a.attribute(e.Mentions)
	if c == nil {
		if len(e.Mentions) == 0 && len(a.periodic) < periodicMax {
			a.periodic[e.Name] = true
		}
		t.help(e.Process, a)
		return nil, true
	}
	periodic := evidence == Candidate && a.periodic[e.Name]
	worker := c.Work.own
	if len(others) > 0 || periodic {
		worker = c.Work.shared
	}
	delete(t.helpers, e.Process)
	p := t.add(e.Process, worker)
	if p != nil {
		p.evidence = &Attribution{Evidence: evidence, Periodic: periodic, Others: others}
	}
	return p, true
}

// help follows a process of a server that does nothing for a call so far.
func (t *Timeline) help(key event.Process, a *agent) {
	if len(t.helpers) < t.options.Processes {
		t.helpers[key] = a
	}
}

// Attribution says how an image of a server's came to belong to a call.
type Attribution struct {
	Evidence Evidence
	// Periodic: the server runs this also while nobody calls it.
	Periodic bool
	// Others are the calls it may have been run for as well.
	Others []Key
}

// doing finds the process as which a server asks or waits for something itself; nil if it
// is done for no call, or for nobody knows which.
func (t *Timeline) doing(process event.Process, body event.Body) *process {
	a := t.agents[process]
	if a == nil {
		return nil
	}
	var mentions []string
	switch b := body.(type) {
	case *event.Request:
		mentions = b.Mentions
	case *event.Setting:
		mentions = b.Mentions
	case *event.Answer: // it is for who asked
		for _, c := range slices.Concat(a.calls, a.recent) {
			if w := c.Work.own; w.op.Closed == "" && w.image.refusedBy(b) {
				return w
			}
		}
		return nil
	}
	c, _, others := a.attribute(mentions)
	switch {
	case c == nil:
		return nil
	case len(others) > 0:
		return c.Work.shared
	}
	return c.Work.own
}

// gone takes the end of a process that is none of a plugin's: a server, or what it ran for
// itself.
func (t *Timeline) gone(now int64, process event.Process) {
	a := t.agents[process]
	if a == nil {
		if t.helpers[process] == nil {
			t.stats.Late++
		}
		delete(t.helpers, process)
		return
	}
	delete(t.agents, process)
	for _, c := range slices.Clone(a.calls) { // nobody answers them any more
		c.Work.Gone = now
		c.served()
	}
}

// refusedBy tells whether the answer is to one of the image's requests.
func (im *Image) refusedBy(a *event.Answer) bool {
	return im.Inside != nil && slices.ContainsFunc(im.Inside.Requests, func(r Request) bool { return r.answeredBy(a) })
}

// dismiss forgets what servers did for an operation that is closed.
func (t *Timeline) dismiss(op *operation) {
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			run.Walk(func(im *Image) {
				if im.Inside == nil {
					return
				}
				for _, c := range im.Inside.Connections {
					if c.Work != nil {
						t.disconnect(c.Work.own, t.now)
						t.disconnect(c.Work.shared, t.now)
					}
				}
			})
		}
	}
	of := func(c *Connection) bool { return c.Work.own.op == op }
	for key, a := range t.agents {
		a.calls, a.recent = slices.DeleteFunc(a.calls, of), slices.DeleteFunc(a.recent, of)
		if len(t.open) == 0 && len(a.calls) == 0 && len(a.periodic) == 0 {
			delete(t.agents, key)
		}
	}
}
