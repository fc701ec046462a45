package winproc

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// after is how long after a call's last plugin an agent's work may still be for its pod: antrea waits up to a minute
	// for the adapter, which the runtime makes when the call is over.
	after = int64(90 * time.Second)
	// strangersMax is how many programs of others are read in a second while calls are open, at some 50 µs each, to see
	// whether they name one.
	strangersMax = 100
	// workMax bounds what agents run at once.
	workMax = 256
)

// agents finds what others than plugins do for pods. Whom a plugin calls over a named pipe nobody tells; but a program
// that is told a sandbox's id, or the name of its adapter, works for it, and who has started one is an agent.
type agents struct {
	r *reader
	// names are globs on programs that are known to be agents.
	names     []string
	sandboxes evidence.Sandboxes
	// plugins are the calls of those that run.
	plugins map[event.Process]*event.Call
	known   map[event.Process]bool
	work    map[uint32]*work
	// queue are events to come.
	queue []due
	// left is how many strangers may be read until it is refilled.
	left, refilled int64
}

// work is a process that perhaps an agent started.
type work struct {
	*watched
	key, up event.Process
	// agent is the program of who started it.
	agent string
	told  bool
}

// due is an event to come: the beginning of w or, where end is set, its end.
type due struct {
	time int64
	w    *work
	end  *End
}

func newAgents(r *reader, names []string) *agents {
	return &agents{
		r: r, names: names, sandboxes: evidence.Sandboxes{}, plugins: map[event.Process]*event.Call{}, known: map[event.Process]bool{}, work: map[uint32]*work{}, left: strangersMax,
	}
}

// keyOf is made of what Windows knows a process by: the monotonic clock is read anew each time.
func keyOf(pid uint32, created Filetime) event.Process {
	return event.Process(strconv.FormatUint(uint64(pid), 10) + "@" + strconv.FormatInt(int64(created), 10))
}

// open reports whether somebody may be working for a pod.
func (a *agents) open() bool {
	if len(a.sandboxes) > 0 {
		return true
	}
	for _, w := range a.r.watched {
		if w.told.command() {
			return true
		}
	}
	return false
}

// began takes a process that neither the runtime nor a plugin started, and reads it.
func (a *agents) began(e Entry) {
	if known := a.work[e.PID]; known != nil {
		if known.created == e.Created {
			return
		}
		a.end(known) // its number is another's
	}
	if len(a.work) >= workMax || !a.open() {
		return
	}
	if a.work[e.Parent] == nil {
		if a.left--; a.left < 0 {
			return
		}
	}
	parent, err := a.r.options.System.Open(e.Parent)
	if err != nil {
		return
	}
	defer parent.Close()
	created, err := parent.Created()
	if err != nil || created > e.Created || !parent.Privileged() {
		return
	}
	p := a.r.open(e)
	if p == nil {
		return
	}
	file, _ := parent.File()
	w := &work{
		watched: &watched{pid: e.PID, parent: e.Parent, created: e.Created, name: e.Name, since: a.r.monotonic(e.Created), process: p},
		up:      keyOf(e.Parent, created), agent: text.Clean(path.Base(program(file)), 64),
	}
	w.key, w.file = keyOf(e.PID, e.Created), slashed(e.Name)
	if file, err := p.File(); err == nil {
		w.file = file
	}
	a.work[e.PID] = w
	a.read(w)
}

// read puts a process into the queue once it is read. Of who cannot be read nothing is told.
func (a *agents) read(w *work) {
	if done, _ := w.look(); !done {
		return
	}
	if w.state == failed {
		a.drop(w)
		return
	}
	a.put(due{time: w.since, w: w})
}

func (a *agents) drop(w *work) {
	w.process.Close()
	if a.work[w.pid] == w {
		delete(a.work, w.pid)
	}
}

func (a *agents) put(d due) {
	i, _ := slices.BinarySearchFunc(a.queue, d, func(x, d due) int { return cmp.Or(cmp.Compare(x.time, d.time), -1) })
	a.queue = slices.Insert(a.queue, i, d)
}

// advance looks who was too young, and who is over.
func (a *agents) advance(now int64) {
	if now-a.refilled > int64(time.Second) {
		a.refilled, a.left = now, strangersMax
		a.sandboxes.Forget(now - after)
		if len(a.sandboxes) == 0 {
			for _, agent := range slices.Sorted(maps.Keys(a.known)) {
				a.r.sink(event.Event{Time: now - int64(window), Body: &event.Agent{Process: agent, Over: true}})
			}
			clear(a.known)
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(a.work)) {
		w := a.work[pid]
		if w.state == early {
			a.read(w)
		}
		if w.state != read {
			continue // it was let go, or is too young
		}
		if _, over := w.process.Ended(); over {
			a.end(w)
		}
	}
}

// end puts the end of who was read into the queue, and lets go of it.
func (a *agents) end(w *work) {
	if end, over := w.process.Ended(); over && w.state == read {
		a.put(due{time: a.r.monotonic(end.At), w: w, end: &end})
	}
	a.drop(w)
}

// close lets go of all processes.
func (a *agents) close() {
	for _, w := range a.work {
		a.drop(w)
	}
}

// flush tells what happened until then.
func (a *agents) flush(until int64) {
	for len(a.queue) > 0 && a.queue[0].time <= until {
		d := a.queue[0]
		a.queue = a.queue[1:]
		switch {
		case d.end == nil:
			a.tell(d.w)
		case d.w.told:
			a.r.sink(event.Event{Time: d.time, Body: &event.Exit{Process: d.w.key, Code: d.end.Code, Used: event.Usage{CPU: d.end.CPU}}})
		}
	}
}

// tell tells of a program that names a sandbox, or that an agent started while one is open.
func (a *agents) tell(w *work) {
	im := w.image()
	im.Env = nil
	mentions := a.sandboxes.Mentions(nil, nil, im.Args...)
	inside := a.of(w.up)
	if len(mentions) == 0 && (len(a.sandboxes) == 0 || !inside && !a.known[w.up] && !a.named(w.agent)) {
		return
	}
	if !inside && !a.known[w.up] {
		a.known[w.up] = true
		a.r.sink(event.Event{Time: w.since, Body: &event.Agent{Process: w.up, PID: w.parent, Name: w.agent, Hidden: true}})
	}
	w.told = true
	e := &event.Exec{Process: w.key, Parent: w.up, PID: w.pid, ParentPID: w.parent, Started: w.since, Mentions: mentions}
	im.Describe(e, a.r.options.Arguments, &redact.Call{})
	a.r.sink(event.Event{Time: w.since, Body: e})
}

// of reports whether a process is work that was told of.
func (a *agents) of(key event.Process) bool {
	for _, w := range a.work {
		if w.key == key && w.told {
			return true
		}
	}
	return false
}

func (a *agents) named(program string) bool {
	return slices.ContainsFunc(a.names, func(glob string) bool {
		ok, _ := path.Match(glob, program)
		return ok
	})
}

// note takes what becomes of plugins.
func (a *agents) note(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Exec:
		if b.Root && b.Call != nil {
			a.plugins[b.Process] = b.Call
			a.sandboxes.Begin(b.Call, false)
		}
	case *event.Exit:
		if call := a.plugins[b.Process]; call != nil {
			delete(a.plugins, b.Process)
			a.sandboxes.End(call.ContainerID, false, e.Time)
		}
	}
}
