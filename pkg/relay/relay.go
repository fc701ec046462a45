// Package relay is an OTLP receiver for the spans of a containerd that does not pass its trace context to
// CNI plugins (2.3 and older). Containerd exports to it; what it sends goes on unchanged to the real
// endpoint, and on the way cniscope learns which span the CNI calls of a sandbox hang under.
//
// Its contract: containerd never waits for what is behind it. A request is answered once
// it is in a bounded queue, or dropped and counted because the queue is full; whether the
// endpoint is there makes no difference to the one who sends.
//
// It listens on loopback, where everyone on the node can connect, and answers the runtime: a connection is
// closed before a byte is read unless its other end is a descriptor of the runtime's own process. So what
// it learns is the runtime's word, and nobody holds a place of the runtime's. Requests are bounded in
// number, size and time all the same; their spans are read field by field, never decoded as a whole; and a
// span counts only for a sandbox whose CNI call the kernel showed, and only if it was under way for as long
// as that call (pkg/timeline).
package relay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/serve"
	"github.com/cniscope/cniscope/pkg/source"
)

const (
	// maxConnections of the runtime's at one time. Containerd has one.
	maxConnections = 64
	// maxWaiting is how many events may wait for whoever takes them: those of the spans of
	// a burst of 250 pods.
	maxWaiting = 1024
	// listenAgain is how often the address is tried while somebody else has it.
	listenAgain = 5 * time.Second
	overhead    = 256 // overhead is what a request that waits counts for besides its bytes.
)

// Options are what a Relay is made of.
type Options struct {
	// Listen is the address, an IP of loopback and a port: "127.0.0.1:4319". Both
	// OTLP/gRPC and OTLP/HTTP with protobuf are spoken there.
	Listen string
	// Bytes is how much may wait for the upstream. 16 MiB.
	Bytes int
	// RetryFrom and RetryTo are the pause after the first request that failed and the
	// longest one. 500 ms and 30 s.
	RetryFrom, RetryTo time.Duration
	// Runtime returns the processes that are the runtime, and answered; nobody else is. It is
	// called whenever somebody connects.
	Runtime func() []int
	Log     *slog.Logger
}

// Relay is the receiver and the way on. Make it with New, run it once, close it.
type Relay struct {
	options Options
	queue   *queue.Queue
	events  chan event.Event
	slots   chan struct{} // one for each request being read
	counts  counts
}

type counts struct {
	refused                                                                         [len(refusals)]atomic.Uint64
	received, spans, told, unheard, unreported, malformed, tooLarge, unread, looped atomic.Uint64
}

// New returns a relay that does not listen yet; what it receives is dropped until
// SetUpstream. The error says that the address is not one of loopback.
func New(o Options) (*Relay, error) {
	address, err := netip.ParseAddrPort(o.Listen)
	if err != nil || !address.Addr().IsLoopback() {
		return nil, fmt.Errorf("relay: %q is not a port of loopback: use an address as in 127.0.0.1:4319", o.Listen)
	}
	if o.Runtime == nil {
		o.Runtime = func() []int { return nil }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Relay{
		options: o,
		queue: queue.New(nil, queue.Options{
			Name: "relay", Does: "relaying containerd's spans",
			Items: math.MaxInt, Bytes: o.Bytes, Overhead: overhead, Largest: maxMessage, Batch: 1,
			RetryFrom: o.RetryFrom, RetryTo: o.RetryTo, Log: o.Log,
		}),
		events: make(chan event.Event, maxWaiting),
		slots:  make(chan struct{}, maxReading),
	}, nil
}

// SetUpstream sends what waits, and all that comes, to an endpoint from now on. Nil: what waits and
// what comes is dropped and counted. The error means that the endpoint is none.
func (r *Relay) SetUpstream(o *otlp.Options) error {
	if o == nil {
		r.queue.SetSender(nil)
		return nil
	}
	to := *o
	to.Admits = notTo(r.options.Listen)
	to.Headers = maps.Clone(o.Headers)
	if to.Headers == nil {
		to.Headers = map[string]string{}
	}
	to.Headers[marker] = "1"
	client, err := otlp.New(to)
	if err != nil {
		return err
	}
	r.queue.SetSender(client)
	return nil
}

// notTo refuses a server by the address that was dialed, however the endpoint was written and resolved.
func notTo(listen string) func(net.Addr) error {
	self, _ := netip.ParseAddrPort(listen) // New has checked it
	return func(a net.Addr) error {
		to := a.(*net.TCPAddr).AddrPort()
		if to.Port() == self.Port() && to.Addr().Unmap() == self.Addr().Unmap() {
			return fmt.Errorf("%s is the relay itself: name the real endpoint in relay.upstream or export.otlp.endpoint", to)
		}
		return nil
	}
}

// Run receives until ctx ends, and delivers what was learned to sink. While the address
// is taken it tries again, and says so once as event.Degraded. It returns no error. What
// waits for the upstream is still sent until Close.
func (r *Relay) Run(ctx context.Context, sink event.Sink) error {
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		r.serve(ctx)
	}()
	for {
		select {
		case e := <-r.events:
			sink(e)
		case <-serving:
			for len(r.events) > 0 {
				sink(<-r.events)
			}
			return nil
		}
		if n := r.counts.unreported.Swap(0); n > 0 {
			sink(source.Now(&event.Lost{Source: r.Name(), Reason: queueFull, Count: n}))
		}
	}
}

// Close ends the relay after Run has returned: it sends what waits until ctx is done, and
// returns how many requests were not delivered.
func (r *Relay) Close(ctx context.Context) (undelivered int) {
	undelivered, err := r.queue.Close(ctx)
	level := slog.LevelInfo
	if undelivered > 0 || err != nil {
		level = slog.LevelWarn
	}
	c := r.Counts()
	r.options.Log.Log(ctx, level, "relayed containerd's spans", "requests", c.Received, "spans", c.Spans, "of sandboxes", c.Told,
		"forwarded", c.Sent, "undelivered", undelivered, "dropped", c.Lost()+c.Unwanted, "error", err)
	return undelivered
}

func (r *Relay) serve(ctx context.Context) {
	degraded := false
	for ctx.Err() == nil {
		err := r.listen(ctx, func() {
			if degraded {
				r.offer(&event.Degraded{Feature: feature, Restored: true, Reason: "it listens on " + r.options.Listen})
			}
			degraded = false
			r.options.Log.Info("relaying containerd's spans", "listen", r.options.Listen)
		})
		if err != nil && !degraded {
			degraded = true
			r.offer(&event.Degraded{Feature: feature, Reason: err.Error() + "; it is tried again every few seconds"})
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

func (r *Relay) listen(ctx context.Context, listening func()) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", r.options.Listen)
	if err != nil {
		return err
	}
	listening()
	door := newDoor(l.(*net.TCPListener), r.options.Runtime, &r.counts.refused, r.options.Log)
	// What is being received takes milliseconds; gRPC connections stay open for ever.
	return serve.Until(ctx, r.server(), netutil.LimitListener(door, maxConnections), 200*time.Millisecond)
}

// learn hands on what the spans of a request say of sandboxes. It never waits.
func (r *Relay) learn(request []byte) error {
	mono, wall := clock.Anchor()
	var all []*event.Above
	n, err := spansOf(request, func(s *span) {
		if above := aboveOf(s, wall-mono); above != nil {
			all = append(all, above)
		}
	})
	if err != nil {
		return err
	}
	r.counts.spans.Add(uint64(n))
	narrowestFirst(all)
	for _, above := range all {
		r.counts.told.Add(1)
		r.offer(above)
	}
	return nil
}

func (r *Relay) offer(body event.Body) {
	select {
	case r.events <- source.Now(body):
	default:
		r.counts.unheard.Add(1)
		r.counts.unreported.Add(1)
	}
}
