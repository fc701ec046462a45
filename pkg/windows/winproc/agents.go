package winproc

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// after bounds agents' work after a call's last plugin: antrea waits up to a minute for the adapter, which the
	// runtime creates after the call.
	after = int64(90 * time.Second)
	// Other programs that are read per second, about 50 µs each.
	strangersMax = 100
	workMax      = 256
)

// agents finds work for pods outside of plugins: a program with a sandbox's id or adapter's name works for it, and its
// parent is an agent. Windows reports no named pipe connections.
type agents struct {
	r              *reader
	names          []string
	sandboxes      evidence.Sandboxes
	plugins        map[event.Process]*event.Call
	known          map[event.Process]bool
	work           map[uint32]*work
	queue          []due
	left, refilled int64
}

type work struct {
	*watched
	key, up event.Process
	agent   string
	told    bool
}

type due struct {
	time int64
	w    *work
	end  *End
}

func newAgents(r *reader, names []string) *agents {
	return &agents{
		r: r, names: names, sandboxes: evidence.Sandboxes{}, plugins: map[event.Process]*event.Call{},
		known: map[event.Process]bool{}, work: map[uint32]*work{}, left: strangersMax,
	}
}

// keyOf identifies a process by PID and creation time, which unlike the monotonic clock is stable.
func keyOf(pid uint32, created Filetime) event.Process { return proctracker.KeyOf(pid, int64(created)) }

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

func (a *agents) began(e Entry) {
	if known := a.work[e.PID]; known != nil {
		if known.created == e.Created {
			return
		}
		a.end(known) // the PID was reused
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
		watched: &watched{
			pid: e.PID, parent: e.Parent, created: e.Created, name: e.Name, since: a.r.monotonic(e.Created), process: p,
		},
		up: keyOf(e.Parent, created), agent: text.Clean(path.Base(program(file)), 64),
	}
	w.key, w.file = keyOf(e.PID, e.Created), slashed(e.Name)
	if file, err := p.File(); err == nil {
		w.file = file
	}
	a.work[e.PID] = w
	a.read(w)
}

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
			continue // dropped, or too young
		}
		if _, over := w.process.Ended(); over {
			a.end(w)
		}
	}
}

func (a *agents) end(w *work) {
	if end, over := w.process.Ended(); over && w.state == read {
		a.put(due{time: a.r.monotonic(end.At), w: w, end: &end})
	}
	a.drop(w)
}

func (a *agents) close() {
	for _, w := range a.work {
		a.drop(w)
	}
}

func (a *agents) flush(until int64) {
	for len(a.queue) > 0 && a.queue[0].time <= until {
		d := a.queue[0]
		a.queue = a.queue[1:]
		switch {
		case d.end == nil:
			a.tell(d.w)
		case d.w.told:
			exit := &event.Exit{Process: d.w.key, Code: d.end.Code, Used: event.Usage{CPU: d.end.CPU}}
			a.r.sink(event.Event{Time: d.time, Body: exit})
		}
	}
}

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

func (a *agents) note(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Exec:
		if b.Root && b.Call != nil {
			a.plugins[b.Process] = b.Call
			a.sandboxes.Begin(b.Call, "", false)
		}
	case *event.Exit:
		if call := a.plugins[b.Process]; call != nil {
			delete(a.plugins, b.Process)
			a.sandboxes.End(call.ContainerID, false, e.Time)
		}
	}
}
