package nri

import (
	"context"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/source"
)

// queue is what lies between the handlers, which never wait, and the sink, which may.
type queue struct {
	events  chan event.Event
	lost    atomic.Uint64          // dropped and not yet reported
	dropped atomic.Uint64          // in all
	trouble atomic.Pointer[string] // why there is no NRI; nil if there is
	wake    chan struct{}          // there is something to deliver or to report
}

// What this source may have to do without, and why it may lose events.
const (
	feature   = "nri"
	queueFull = "queue full"
)

func newQueue(size int) queue {
	return queue{events: make(chan event.Event, size), wake: make(chan struct{}, 1)}
}

// offer never waits, and wakes nobody: see pokeAfter.
func (q *queue) offer(e event.Event) {
	select {
	case q.events <- e:
	default:
		q.dropped.Add(1)
		q.lost.Add(1)
	}
}

// say sets what is wrong with the connection, nil if nothing is. Only the last
// word counts, so it needs no queue.
func (q *queue) say(trouble *string) {
	q.trouble.Store(trouble)
	q.poke()
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// pokeAfter wakes the pump when the call that ctx belongs to is answered: the server cancels its context
// then. On a busy node whoever is woken takes the CPU of who wakes it, and a pod would wait for that.
func (q *queue) pokeAfter(ctx context.Context) {
	if ctx.Done() == nil {
		q.poke()
		return
	}
	context.AfterFunc(ctx, q.poke)
}

// pump delivers until ctx is done, and then what is left. All calls of the sink come from here.
func (p *Plugin) pump(ctx context.Context, sink event.Sink) {
	var degraded bool // what the sink was told last
	for over := false; !over; {
		select {
		case <-p.queue.wake:
		case <-ctx.Done():
			over = true
		}
		for len(p.queue.events) > 0 {
			p.deliver(sink, <-p.queue.events)
		}
		p.report(sink, &degraded)
	}
}

// report tells the sink of lost events, now that there is room again, and of NRI having gone or come back.
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
