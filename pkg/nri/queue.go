package nri

import (
	"context"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/source"
)

// queue decouples the handlers, which never wait, from the sink, which may block.
type queue struct {
	events  chan event.Event
	lost    atomic.Uint64          // dropped and not yet reported
	dropped atomic.Uint64          // dropped in all
	trouble atomic.Pointer[string] // why NRI is unavailable; nil if it is available
	wake    chan struct{}          // there is something to deliver or to report
}

// The feature that may be unavailable, and the reason of losses.
const (
	feature   = "nri"
	queueFull = "queue full"
)

func newQueue(size int) queue {
	return queue{events: make(chan event.Event, size), wake: make(chan struct{}, 1)}
}

// offer never waits and does not wake the pump: see pokeAfter.
func (q *queue) offer(e event.Event) {
	select {
	case q.events <- e:
	default:
		q.dropped.Add(1)
		q.lost.Add(1)
	}
}

// say sets why NRI is unavailable, nil if it is available. Only the latest value counts.
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

// pokeAfter wakes the pump after the call of ctx was answered, when the server cancels ctx. On a busy node the woken
// pump would take the handler's CPU, and the pod would wait.
func (q *queue) pokeAfter(ctx context.Context) {
	if ctx.Done() == nil {
		q.poke()
		return
	}
	context.AfterFunc(ctx, q.poke)
}

// pump delivers until ctx ends, and then the remaining events. It makes all calls of the sink.
func (p *Plugin) pump(ctx context.Context, sink event.Sink) {
	var degraded bool // the state that the sink got last
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

// report sends lost events and changes of NRI's availability to the sink.
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
