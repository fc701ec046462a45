package agents

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/functions"
)

const (
	watchAfter  = 200 * time.Millisecond // a connection's age
	lookEvery   = 100 * time.Millisecond
	seldomEvery = time.Second // after looksOften
	looksOften  = 100
	looksMax    = 400 // 5 minutes
	looksAfter  = 3   // show what goes on in the background
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

func (a *Agents) slow(known *agent, c *connection) {
	if known.watch == nil {
		known.watch = &watch{}
		if a.Functions != nil && a.kernel.MayServe(known.key.Pid) {
			known.watch.Watch = a.Functions.Watch(int(known.key.Pid))
		}
	}
	if w := known.watch.Watch; w != nil && c.look == 0 {
		c.look = w.Looks() + 1
	}
	c.shared = c.shared || known.connections > 1
}

func (a *Agents) wasSlow(socket string, c *connection) {
	if known := a.known[c.agent]; c.look > 0 && known != nil && known.watch != nil {
		w := known.watch
		w.ended = append(w.ended, ended{socket, c.look - 1, w.Looks(), c.shared || known.connections > 1})
	}
}

func (a *Agents) lookOn(now int64, known *agent, waits bool) {
	w := known.watch
	if w == nil || w.Watch == nil || !waits && len(w.ended) == 0 || w.Looks() > looksMax {
		known.unwatch()
		return
	}
	every := lookEvery
	if len(w.ended) > 0 {
		every = sampleAfter
	} else if w.Looks() > looksOften {
		every = seldomEvery
	}
	if now-w.last < int64(every) {
		return
	}
	w.last = now
	w.Look()
	w.ended = slices.DeleteFunc(w.ended, func(e ended) bool {
		over := w.Looks() >= e.last+looksAfter
		if !over {
			return false
		}
		if stack, sure := w.Between(e.first, e.last); len(stack) > 0 {
			s := known.state()
			s.Socket, s.Stack, s.Shared = e.socket, stack, e.shared || !sure
			a.kernel.Tell(s)
		}
		return true
	})
}

func (k *agent) unwatch() {
	if k.watch != nil && k.watch.Watch != nil {
		k.watch.Close()
	}
	k.watch = nil
}
