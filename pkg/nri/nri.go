// Package nri is the source of a sandbox's identity and lifecycle: a plugin of the
// container runtime's Node Resource Interface.
//
// Its contract: never block, never fail a pod. The runtime calls a plugin's handlers one after another,
// under locks of the whole node, and every millisecond in one delays every pod; after two seconds it
// disconnects the plugin, and an error fails the pod. So a handler copies a bounded number of fields,
// offers them to a bounded queue without waiting, recovers its own panics and returns nil. What the queue
// cannot take is dropped, counted and reported as event.Lost. Nothing here asks the runtime to change
// anything.
//
// The plugin is either external (it connects to the runtime's NRI socket and connects again whenever it is
// cut off) or pre-installed (the runtime started it and handed it a socket; found out from the
// environment). A pre-installed plugin ends when its runtime ends, because the next one starts its own.
// Where it is only cut off, it comes back by the external socket; note that containerd kills a
// pre-installed plugin which it disconnected itself, at the next request.
//
// Where there is no NRI at all everything else goes on: it is said once, as
// event.Degraded, and tried again in the background.
package nri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/source"
)

// What is used where Options are silent.
const (
	DefaultName  = "cniscope"
	DefaultIndex = "90" // late: what others change of a pod is of no interest, but must not wait for us
	// DefaultSocket is where containerd listens for external plugins.
	DefaultSocket = api.DefaultSocketPath
	// DefaultQueue holds a burst of 135 pods' starts and stops and the
	// synchronisation of 500 sandboxes; with labels it is some MiB at the very most.
	DefaultQueue = 1024
)

// ErrRuntimeGone is what Run returns in a pre-installed plugin whose runtime has
// ended. The program should end too: the next runtime starts its own.
var ErrRuntimeGone = errors.New("the container runtime that started this plugin is gone")

// Options are what a Plugin is made of. All may be left empty.
type Options struct {
	// Name and Index register an external plugin; the runtime names a pre-installed
	// one by its file. The index is two digits, the order among plugins.
	Name, Index string
	// Socket is the path of the runtime's NRI socket.
	Socket string
	// Queue is how many events may wait for the sink.
	Queue int
	// Configure takes the text of the plugin's configuration file, if the runtime
	// has one (only for pre-installed plugins). Its error is logged, nothing else:
	// the options stay as they were. It may take its time, nobody waits for it long.
	Configure func(text string) error
	// Connected is called at each registration with the runtime's name and version,
	// from a goroutine of its own.
	Connected func(name, version string)
	// Anchors are told who the runtime is.
	Anchors *anchor.Set
	Log     *slog.Logger
}

// Plugin is the source. Make it with New, run it once.
type Plugin struct {
	options      Options
	preinstalled bool
	pace         pace
	queue        queue
	attempted    chan struct{}
	attempt      func() // closes it, once
	panicOnce    sync.Once

	connected  atomic.Bool
	runtimePID atomic.Int64
	sessions   atomic.Uint64
	received   atomic.Uint64
	panics     atomic.Uint64
	times      times
}

// New makes a plugin; it does not connect yet. It is pre-installed if the
// environment says so (NRI_PLUGIN_SOCKET). The error says which option is wrong.
func New(o Options) (*Plugin, error) {
	o.Name, o.Index = cmp.Or(o.Name, DefaultName), cmp.Or(o.Index, DefaultIndex)
	o.Socket, o.Queue = cmp.Or(o.Socket, DefaultSocket), cmp.Or(o.Queue, DefaultQueue)
	o.Anchors, o.Log = cmp.Or(o.Anchors, anchor.New()), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := api.CheckPluginName(o.Name); err != nil {
		return nil, fmt.Errorf("NRI: %w: use letters, digits and _.+-", err)
	}
	if err := api.CheckPluginIndex(o.Index); err != nil {
		return nil, fmt.Errorf("NRI: %w: use two digits, as in %s", err, DefaultIndex)
	}
	if o.Queue < 0 {
		return nil, fmt.Errorf("NRI: a queue of %d events: use at least 1", o.Queue)
	}
	attempted := make(chan struct{})
	return &Plugin{
		options:      o,
		preinstalled: os.Getenv(api.PluginSocketEnvVar) != "",
		pace:         defaultPace,
		queue:        newQueue(o.Queue),
		attempted:    attempted,
		attempt:      sync.OnceFunc(func() { close(attempted) }),
	}, nil
}

// Preinstalled reports whether the runtime started this process as its plugin.
func (p *Plugin) Preinstalled() bool { return p.preinstalled }

// Attempted is closed once the first registration has been tried, whether it came to something (and the
// runtime's sandboxes were received) or not. Heavy work, such as loading programs into the kernel, should
// wait for it: the runtime gives a plugin only seconds to register, and waits for it meanwhile.
func (p *Plugin) Attempted() <-chan struct{} { return p.attempted }

// Run registers, and delivers events to the sink from one goroutine until ctx is done; it returns nil then,
// and ErrRuntimeGone in a pre-installed plugin whose runtime has ended. Nothing else ends it. What was
// received before is delivered before it returns.
func (p *Plugin) Run(ctx context.Context, sink event.Sink) error {
	pumpCtx, stopPump := context.WithCancel(context.WithoutCancel(ctx))
	var pump sync.WaitGroup
	pump.Go(func() { p.pump(pumpCtx, sink) })
	err := p.serve(ctx)
	stopPump()
	pump.Wait()
	c := p.Counts()
	p.options.Log.Info("NRI handlers, in which pods waited", "calls", c.Handler.Count, "p50", c.Handler.Quantile(0.5),
		"p99", c.Handler.Quantile(0.99), "max", c.Handler.Max, "dropped", c.Dropped)
	return err
}

// Counts is what the plugin counted since it was made.
type Counts struct {
	// Connected reports whether the runtime knows us now.
	Connected bool
	// RuntimePID is the process at the other end of the connection; 0 if unknown.
	RuntimePID int
	// Sessions is how often we registered.
	Sessions uint64
	// Received is how many sandbox events the runtime sent, Dropped how many of them found the queue full.
	Received, Dropped uint64
	// Panics is how many panics were survived, in handlers and in the sink.
	Panics  uint64
	Handler Times // Handler is the own time of the handlers that a pod waits for.
}

// Name is "nri".
func (*Plugin) Name() string { return "nri" }

// Stats reports whether the runtime knows us, and what was counted.
func (p *Plugin) Stats() source.Stats {
	counts := p.Counts()
	s := source.Stats{State: "degraded", Features: []string{feature}, Losses: []string{queueFull}, Readings: counts.Readings()}
	if counts.Connected {
		s.State = "registered"
	}
	return s
}

// Counts returns a snapshot. It is safe for concurrent use.
func (p *Plugin) Counts() Counts {
	return Counts{
		Connected:  p.connected.Load(),
		RuntimePID: int(p.runtimePID.Load()),
		Sessions:   p.sessions.Load(),
		Received:   p.received.Load(),
		Dropped:    p.queue.dropped.Load(),
		Panics:     p.panics.Load(),
		Handler:    p.times.snapshot(),
	}
}

// Readings are the metrics that c is.
func (c Counts) Readings() []meter.Reading {
	return []meter.Reading{
		meter.Count("nri_sessions_total", "Registrations with the runtime.", c.Sessions),
		meter.Count("nri_events_total", "Sandbox events that the runtime sent.", c.Received),
		meter.Level("nri_handler_max_seconds", "The longest that a pod waited for one of cniscope's NRI handlers.", c.Handler.Max.Seconds()),
	}
}

// survive is deferred where foreign data or foreign code could panic.
func (p *Plugin) survive(where string) {
	reason := recover()
	if reason == nil {
		return
	}
	p.panics.Add(1)
	p.panicOnce.Do(func() {
		p.options.Log.Error("NRI: survived a panic; further ones are only counted", "in", where, "panic", fmt.Sprintf("%.200q", fmt.Sprint(reason)))
	})
}

// pace is how fast things are tried and given up.
type pace struct {
	first   time.Duration // the first delay before connecting again
	missing time.Duration // the longest delay while nobody listens: to ask costs nothing
	refused time.Duration // the longest delay while somebody does: registering takes a lock of the whole node
	steady  time.Duration // a session that lasted this long was a good one
	start   time.Duration // for registering and being configured
	settle  time.Duration // for the first synchronisation, before heavy work begins
	stop    time.Duration // for the stub to end
}

// The runtime itself gives a plugin 5 s to register and 2 s for each request
// (nri pkg/api: DefaultPluginRegistrationTimeout, DefaultPluginRequestTimeout).
var defaultPace = pace{
	first:   500 * time.Millisecond,
	missing: 5 * time.Second,
	refused: time.Minute,
	steady:  time.Minute,
	start:   10 * time.Second,
	settle:  2 * time.Second,
	stop:    2 * time.Second,
}
