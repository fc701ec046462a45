package node

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

// Consumer takes the events of a node and the results of its pipeline. To add one, write a file and a line in
// node.consume. Rules:
//
//   - Only the consumer's own goroutine calls Event and Result, one at a time and in order.
//   - Event and Result may block. While the queue is full, items are dropped and counted
//     (cniscope_consumer_lost_total).
//   - A panic loses only the item, so release locks by defer.
//   - After a loss, a consumer that wants event.Lost gets one with its own name as the source.
//   - Wants is called for each event, and only looks at its type.
//   - Do not change events and results: all consumers share them.
//   - Lock what scrapes and requests read, which come from other goroutines.
//   - While the optional method Waits returns true, the probe sends ticks. It must not block.
//   - When the node ends, the queue is handed over within a second.
type Consumer interface {
	Wants(body event.Body) bool
	Event(e event.Event)
	Result(r pipeline.Result)
}

type results func(r pipeline.Result)

func (results) Wants(event.Body) bool      { return false }
func (results) Event(event.Event)          {}
func (f results) Result(r pipeline.Result) { f(r) }

// consumers hands events and results to each consumer without waiting. One goroutine at a time sends.
type consumers struct {
	log *slog.Logger

	mu  sync.Mutex // held only while queues are filled
	all []*consumed
	// lost is by name, for there may be several recorders.
	lost map[string]*lost
}

type lost struct{ full, panics atomic.Uint64 }

type consumed struct {
	Consumer
	name   string
	log    *slog.Logger
	queue  chan item
	ended  chan struct{}
	lost   *lost
	untold atomic.Uint64 // not yet reported to the consumer
}

type item struct {
	at   int64 // monotonic ns
	what any
}

// join hands over the events in first, then what follows.
func (c *consumers) join(name string, consumer Consumer, room int, first ...event.Event) *consumed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost[name] == nil {
		c.lost[name] = &lost{}
	}
	one := &consumed{
		Consumer: consumer, name: name, log: c.log, lost: c.lost[name],
		queue: make(chan item, room), ended: make(chan struct{}),
	}
	for _, e := range first {
		one.offer(item{e.Time, e.Body})
	}
	c.all = append(c.all, one)
	go one.run()
	return one
}

func (c *consumers) leave(one *consumed) {
	c.mu.Lock()
	i := slices.Index(c.all, one)
	if i >= 0 {
		c.all = slices.Delete(c.all, i, i+1)
		close(one.queue)
	}
	c.mu.Unlock()
	<-one.ended
}

func (c *consumers) close(ctx context.Context) {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	var stuck []string
	for _, one := range all {
		close(one.queue)
	}
	for _, one := range all {
		select {
		case <-one.ended:
		case <-ctx.Done():
			stuck = append(stuck, one.name)
		}
	}
	if len(stuck) > 0 {
		c.log.Warn("consumers left events unread", "consumers", stuck)
	}
}

func (c *consumers) event(e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if one.Wants(e.Body) {
			one.offer(item{e.Time, e.Body})
		}
	}
}

func (c *consumers) result(r pipeline.Result, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		one.offer(item{now, r})
	}
}

func (c *consumers) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.all, func(one *consumed) bool {
		w, is := one.Consumer.(interface{ Waits() bool })
		return is && w.Waits()
	})
}

func (c *consumers) readings() (all []meter.Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, lost := range c.lost {
		all = append(all, meter.ByReason("consumer_lost_total",
			"Events and results that a part of cniscope did not get: its queue was full, or it panicked.",
			map[string]uint64{"queue_full": lost.full.Load(), "panic": lost.panics.Load()}, nil, "consumer", name)...)
	}
	return all
}

func (c *consumed) offer(i item) {
	if n := c.untold.Load(); n > 0 {
		said := &event.Lost{Source: c.name, Reason: "consumer too slow", Count: n}
		if !c.Wants(said) || c.put(item{i.at, said}) {
			c.untold.Add(-n)
		}
	}
	if c.put(i) {
		return
	}
	c.lost.full.Add(1)
	if c.untold.Add(1) == 1 {
		c.log.Warn("consumer too slow, dropping events and results", "consumer", c.name)
	}
}

func (c *consumed) put(i item) bool {
	select {
	case c.queue <- i:
		return true
	default:
		return false
	}
}

func (c *consumed) run() {
	defer close(c.ended)
	for i := range c.queue {
		c.take(i)
	}
}

func (c *consumed) take(i item) {
	defer func() {
		if r := recover(); r != nil {
			c.lost.panics.Add(1)
			c.untold.Add(1)
			c.log.Error("consumer panicked; please report this",
				"consumer", c.name, "item", fmt.Sprintf("%T", i.what), "panic", r, "stack", string(debug.Stack()))
		}
	}()
	switch what := i.what.(type) {
	case event.Body:
		c.Event(event.Event{Time: i.at, Body: what})
	case pipeline.Result:
		c.Result(what)
	}
}
