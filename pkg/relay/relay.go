// Package relay receives OTLP from a containerd that passes no trace context to CNI plugins (2.3 and older). It
// forwards spans unchanged and extracts the parents of CNI calls.
//
// Every process can connect to loopback, so the relay admits only the runtime, and bounds requests in number, size
// and time. A span counts only if a CNI call of its sandbox that the kernel reported lies within it (pkg/timeline).
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
	"sync"
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
	// maxConnections bounds the runtime's connections; containerd has one.
	maxConnections = 64
	// maxWaiting bounds waiting events: a burst of 250 pods.
	maxWaiting  = 1024
	listenAgain = 5 * time.Second
	overhead    = 256
)

// Options configure a Relay.
type Options struct {
	Listen string
	// Bytes bounds the queue. Default: 16 MiB.
	Bytes int
	// RetryFrom and RetryTo bound pauses between retries. Default: 500 ms and 30 s.
	RetryFrom, RetryTo time.Duration
	Runtime            func() []int
	Log                *slog.Logger
}

// Relay receives and forwards. Call New, then Run once, then Close.
type Relay struct {
	options Options
	queue   *queue.Queue
	events  chan event.Event
	slots   chan struct{}

	mu         sync.Mutex // guards the fields below
	counts     Counts     // without those of the queue
	unreported uint64     // lost events
}

// New returns a relay that drops requests until SetUpstream. The address must be loopback.
func New(o Options) (*Relay, error) {
	address, err := netip.ParseAddrPort(o.Listen)
	if err != nil || !address.Addr().IsLoopback() {
		return nil, fmt.Errorf("relay: %q is not a port of loopback: use an address as in 127.0.0.1:4319", o.Listen)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Relay{
		options: o,
		queue: queue.New(nil, queue.Options{
			Name:  "relay",
			Items: math.MaxInt, Bytes: o.Bytes, Overhead: overhead, Largest: maxMessage, Batch: 1,
			RetryFrom: o.RetryFrom, RetryTo: o.RetryTo, Log: o.Log,
		}),
		counts: Counts{Refused: map[Refusal]uint64{}},
		events: make(chan event.Event, maxWaiting),
		slots:  make(chan struct{}, maxReading),
	}, nil
}

// SetUpstream forwards queued and later requests; nil drops and counts them.
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

func notTo(listen string) func(net.Addr) error {
	self, _ := netip.ParseAddrPort(listen)
	return func(a net.Addr) error {
		to := a.(*net.TCPAddr).AddrPort()
		if to.Port() == self.Port() && to.Addr().Unmap() == self.Addr().Unmap() {
			return fmt.Errorf("%s is the relay itself: name the real endpoint in relay.upstream or export.otlp.endpoint", to)
		}
		return nil
	}
}

// Run receives until ctx ends and sends the extracted spans to sink. While the address is in use, it retries and
// sends event.Degraded. It returns nil; the queue sends until Close.
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
		r.mu.Lock()
		n := r.unreported
		r.unreported = 0
		r.mu.Unlock()
		if n > 0 {
			sink(source.Now(&event.Lost{Source: r.Name(), Reason: queueFull, Count: n}))
		}
	}
}

// Close sends queued requests until ctx is done and returns the number of undelivered ones. Call it after Run.
func (r *Relay) Close(ctx context.Context) (undelivered int) {
	undelivered, err := r.queue.Close(ctx)
	level := slog.LevelInfo
	if undelivered > 0 || err != nil {
		level = slog.LevelWarn
	}
	c := r.Counts()
	r.options.Log.Log(ctx, level, "relayed containerd's spans", "requests", c.Received, "spans", c.Spans, "of sandboxes",
		c.Told,
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
	door := newDoor(l.(*net.TCPListener), r.options.Runtime, r.refused, r.options.Log)
	// Requests last milliseconds; gRPC connections stay open.
	return serve.Until(ctx, r.server(), netutil.LimitListener(door, maxConnections), 200*time.Millisecond)
}

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
	r.count(&r.counts.Spans, uint64(n))
	narrowestFirst(all)
	for _, above := range all {
		r.count(&r.counts.Told, 1)
		r.offer(above)
	}
	return nil
}

func (r *Relay) offer(body event.Body) {
	select {
	case r.events <- source.Now(body):
	default:
		r.count(&r.counts.Unheard, 1)
		r.count(&r.unreported, 1)
	}
}
