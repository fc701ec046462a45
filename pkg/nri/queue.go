package nri

import (
	"context"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/source"
)

type queue struct {
	events  chan event.Event
	lost    atomic.Uint64
	dropped atomic.Uint64
	trouble atomic.Pointer[string]
	wake    chan struct{}
}

const (
	feature   = "nri"
	queueFull = "queue full"
)

func newQueue(size int) queue {
	return queue{events: make(chan event.Event, size), wake: make(chan struct{}, 1)}
}

func (q *queue) offer(e event.Event) {
	select {
	case q.events <- e:
	default:
		q.dropped.Add(1)
		q.lost.Add(1)
	}
}

func (q *queue) say(trouble *string) {
	q.trouble.Store(trouble)
	q.poke()
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default: // already woken
	}
}

// pokeAfter wakes the pump after ctx's call was answered: earlier, it might take the handler's CPU.
func (q *queue) pokeAfter(ctx context.Context) {
	if ctx.Done() == nil {
		q.poke()
		return
	}
	context.AfterFunc(ctx, q.poke)
}

func (p *Plugin) pump(ctx context.Context, sink event.Sink) {
	var degraded bool
	for over := false; !over; {
		select {
		case <-p.queue.wake:
		case <-ctx.Done():
			over = true
		}
		for len(p.queue.events) > 0 {
			e := <-p.queue.events
			if s, is := e.Body.(*event.Sandbox); is {
				p.reported(ctx, s, e.Time)
			}
			p.deliver(sink, e)
		}
		p.report(sink, &degraded)
	}
}

func (p *Plugin) reported(ctx context.Context, s *event.Sandbox, at int64) {
	switch s.Phase {
	case event.SandboxRunning, event.SandboxPresent:
		p.started(ctx, s, at)
	default:
		p.stopped(s, at)
	}
}

func (p *Plugin) report(sink event.Sink, degraded *bool) {
	if n := p.queue.lost.Swap(0); n > 0 {
		p.deliver(sink, source.Now(&event.Lost{Source: p.Name(), Reason: queueFull, Count: n}))
	}
	trouble := p.queue.trouble.Load()
	if (trouble != nil) == *degraded {
		return
	}
	*degraded = trouble != nil
	body := &event.Degraded{Feature: feature, Restored: true, Reason: "the runtime's NRI answers again"}
	if trouble != nil {
		body = &event.Degraded{Feature: feature, Reason: *trouble}
	}
	p.deliver(sink, source.Now(body))
}

func (p *Plugin) deliver(sink event.Sink, e event.Event) {
	defer p.survive("the sink")
	sink(e)
}
