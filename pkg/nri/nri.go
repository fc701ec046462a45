// Package nri is the source of a sandbox's identity and lifecycle: a plugin of the container runtime's Node Resource
// Interface.
//
// It never blocks and never fails a pod. The runtime calls a plugin's handlers one after another, under locks of the
// whole node: each millisecond delays every pod, an error fails the pod, and after two seconds the runtime
// disconnects the plugin. So a handler copies a bounded number of fields into a bounded queue without waiting,
// recovers its panics and returns nil. Drops of a full queue are counted and reported as event.Lost. The plugin never
// asks the runtime to change anything.
//
// An external plugin connects to the runtime's NRI socket, and reconnects after each disconnect. A pre-installed
// plugin gets its socket from the runtime, by environment, and exits with it, because the next runtime starts its
// own. After a mere disconnect it uses the external socket. containerd kills a pre-installed plugin that it
// disconnected itself, at the next request.
//
// Without NRI the other sources continue; the plugin reports event.Degraded once and keeps trying.
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

// Defaults of Options.
const (
	DefaultName  = "cniscope"
	DefaultIndex = "90" // late: changes by other plugins do not matter, and they need not wait
	// DefaultSocket is containerd's socket for external plugins.
	DefaultSocket = api.DefaultSocketPath
	// DefaultQueue holds the starts and stops of 135 pods and the synchronization of 500 sandboxes: a few MiB with
	// labels.
	DefaultQueue = 1024
)

// ErrRuntimeGone is the error of Run in a pre-installed plugin whose runtime exited. The program should exit also:
// the next runtime starts its own.
var ErrRuntimeGone = errors.New("the container runtime that started this plugin is gone")

// Options are the parameters of a Plugin. All may be empty.
type Options struct {
	// Name and Index register an external plugin; the file name of a pre-installed plugin has both. The index is two
	// digits, the order among plugins.
	Name, Index string
	// Socket is the path of the runtime's NRI socket.
	Socket string
	// Queue is the number of events that may wait for the sink.
	Queue int
	// Configure gets the text of a pre-installed plugin's configuration file, if the runtime has one. Its error is
	// only logged, and the options stay as they were. It may be slow.
	Configure func(text string) error
	// Connected is called at each registration, from its own goroutine.
	Connected func(name, version string)
	// Anchors receives the runtime's process.
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
	attempt      func() // closes attempted, once
	panicOnce    sync.Once

	connected  atomic.Bool
	runtimePID atomic.Int64
	sessions   atomic.Uint64
	received   atomic.Uint64
	panics     atomic.Uint64
	times      times
}

// New returns a plugin, which Run connects. It is pre-installed if NRI_PLUGIN_SOCKET is set. The error names a wrong
// option.
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

// Attempted is closed after the first registration failed, or succeeded and delivered the sandboxes. Heavy work, such
// as loading BPF programs, should wait for it: the runtime waits only seconds for a registration.
func (p *Plugin) Attempted() <-chan struct{} { return p.attempted }

// Run registers, and delivers events to the sink from one goroutine until ctx ends. It returns nil, or ErrRuntimeGone
// in a pre-installed plugin whose runtime exited. It first delivers all received events.
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

// Counts are the plugin's counters.
type Counts struct {
	// Connected is true if the plugin is registered now.
	Connected bool
	// RuntimePID is the process at the other end of the connection; 0 if unknown.
	RuntimePID int
	// Sessions is the number of registrations.
	Sessions uint64
	// Received is the number of sandbox events from the runtime; Dropped of them found the queue full.
	Received, Dropped uint64
	// Panics is the number of recovered panics, in handlers and in the sink.
	Panics  uint64
	Handler Times // Handler are the durations of the handlers that a pod waits for.
}

// Name returns "nri".
func (*Plugin) Name() string { return "nri" }

// Stats returns the registration state and the counters.
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

// Readings returns c as metrics.
func (c Counts) Readings() []meter.Reading {
	return []meter.Reading{
		meter.Count("nri_sessions_total", "Registrations with the runtime.", c.Sessions),
		meter.Count("nri_events_total", "Sandbox events that the runtime sent.", c.Received),
		meter.Level("nri_handler_max_seconds", "The longest that a pod waited for one of cniscope's NRI handlers.", c.Handler.Max.Seconds()),
	}
}

// survive is deferred around foreign data or code that could panic.
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

// pace are the delays and timeouts.
type pace struct {
	first   time.Duration // the first delay before reconnecting
	missing time.Duration // the longest delay without a listener: connecting costs nothing
	refused time.Duration // the longest delay with a listener: a registration takes a lock of the whole node
	steady  time.Duration // a session of this duration resets the delay
	start   time.Duration // timeout for registration and configuration
	settle  time.Duration // timeout for the first synchronization, before heavy work begins
	stop    time.Duration // timeout for the stub to stop
}

// The runtime allows 5 s for a registration and 2 s for a request (nri pkg/api: DefaultPluginRegistrationTimeout,
// DefaultPluginRequestTimeout).
var defaultPace = pace{
	first:   500 * time.Millisecond,
	missing: 5 * time.Second,
	refused: time.Minute,
	steady:  time.Minute,
	start:   10 * time.Second,
	settle:  2 * time.Second,
	stop:    2 * time.Second,
}
