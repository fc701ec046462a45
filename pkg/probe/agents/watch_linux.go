package agents

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	lookEvery   = 100 * time.Millisecond
	seldomEvery = time.Second // after looksOften
	looksOften  = 100
	looksAfter  = 3 // show what goes on in the background
)

type watch struct {
	*functions.Watch // nil: it has no names
	last             int64
	ended            []ended
}

type ended struct {
	socket      string
	first, last int // looks
	shared      bool
}

func (a *Agents) slow(now int64, known *agent, c *connection) {
	c.shared = c.shared || known.connections > 1
	if known.watch == nil {
		if a.Functions != nil {
			if !a.Functions.Free(now) {
				return
			}
			defer a.Functions.Spent(clock.Monotonic())
		}
		known.watch = &watch{}
		mounts, _ := procfs.Namespace(int(known.key.Pid), "mnt") // before the check
		if a.Functions != nil && a.kernel.MayServe(known.key.Pid) {
			known.watch.Watch = a.Functions.Watch(int(known.key.Pid), mounts)
		}
	}
	if w := known.watch.Watch; w != nil && c.look == 0 {
		c.look = w.Looks() + 1
	}
}

func (a *Agents) wasSlow(socket string, c *connection) {
	known := a.known[c.agent]
	if c.look == 0 || known == nil || known.watch == nil || known.watch.Watch == nil {
		return
	}
	if w := known.watch; w.Looks() < 2*functions.LooksMax {
		w.ended = append(w.ended, ended{socket, c.look - 1, w.Looks(), c.shared || known.connections > 1})
		who := &event.Agent{Process: kernel.ProcessOf(known.key), PID: known.key.Pid}
		a.was(who, event.Agent{Socket: socket, Sought: true})
	}
}

func (a *Agents) was(s *event.Agent, where event.Agent) {
	s.Socket, s.Stack, s.Shared, s.Sought = where.Socket, where.Stack, where.Shared, where.Sought
	a.kernel.Tell(s)
}

func (a *Agents) lookOn(now int64, known *agent, waits bool) {
	w := known.watch
	if w != nil && waits && (w.Watch == nil || len(w.ended) == 0 && w.Looks() > functions.LooksMax) {
		return
	}
	if w == nil || w.Watch == nil || !waits && len(w.ended) == 0 {
		known.unwatch()
		return
	}
	every := lookEvery
	if len(w.ended) > 0 {
		every = sampleAfter
	} else if w.Looks() > looksOften {
		every = seldomEvery
	}
	if now-w.last < int64(every) || !a.Functions.Free(now) {
		return
	}
	defer a.Functions.Spent(clock.Monotonic())
	w.last = now
	w.Look()
	w.ended = slices.DeleteFunc(w.ended, func(e ended) bool {
		over := w.Looks() >= e.last+looksAfter
		if !over {
			return false
		}
		stack, sure := w.Between(e.first, e.last)
		a.was(known.state(), event.Agent{Socket: e.socket, Stack: stack, Shared: e.shared || !sure})
		return true
	})
}

func (k *agent) unwatch() {
	if k.watch != nil && k.watch.Watch != nil {
		k.watch.Close()
	}
	k.watch = nil
}
