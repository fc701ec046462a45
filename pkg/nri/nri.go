// Package nri is the source of a sandbox's identity and lifecycle, a Node Resource Interface plugin.
//
// It never blocks or fails a pod. The runtime calls handlers under locks of the node: each millisecond delays every
// pod, an error fails the pod, and a timeout of 2 s disconnects the plugin.
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

// Name and index of an external plugin; a pre-installed one has them in its file name.
const (
	name  = "cniscope"
	index = "90" // late
)

const defaultQueue = 1024

// ErrRuntimeGone means that a pre-installed plugin's runtime exited, so the program should exit.
var ErrRuntimeGone = errors.New("the container runtime that started this plugin is gone")

// Options may be empty.
type Options struct {
	// Plugins lists other NRI plugins.
	Plugins func(runtime int) (others []Other, ok bool)
	Socket  string
	Queue   int
	// Receives a pre-installed plugin's configuration.
	Configure func(text string) error
	// Called at each registration, in its own goroutine.
	Connected func(name, version string)
	Anchors   *anchor.Set
	Log       *slog.Logger
}

// Plugin is the source. Run it once.
type Plugin struct {
	options      Options
	preinstalled bool
	pace         pace
	queue        queue
	attempted    chan struct{}
	attempt      func()
	panicOnce    sync.Once

	connected  atomic.Bool
	runtimePID atomic.Int64
	sessions   atomic.Uint64
	received   atomic.Uint64
	panics     atomic.Uint64
	unlooked   atomic.Uint64
	times      times
	awaited    awaited
	ends       map[string]context.CancelFunc // of the pump, by sandbox
}

// New returns a plugin, which is pre-installed if NRI_PLUGIN_SOCKET is set.
func New(o Options) *Plugin {
	o.Socket, o.Queue = cmp.Or(o.Socket, api.DefaultSocketPath), cmp.Or(o.Queue, defaultQueue)
	o.Anchors, o.Log = cmp.Or(o.Anchors, anchor.New()), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	attempted := make(chan struct{})
	return &Plugin{
		options:      o,
		preinstalled: os.Getenv(api.PluginSocketEnvVar) != "",
		pace:         defaultPace,
		queue:        newQueue(o.Queue),
		awaited:      awaited{seen: map[string]*looks{}, done: map[string]bool{}},
		ends:         map[string]context.CancelFunc{},
		attempted:    attempted,
		attempt:      sync.OnceFunc(func() { close(attempted) }),
	}
}

// Attempted is closed after the first registration. Heavy work should wait for it.
func (p *Plugin) Attempted() <-chan struct{} { return p.attempted }

// Run delivers events from one goroutine until ctx ends. It returns nil or ErrRuntimeGone.
func (p *Plugin) Run(ctx context.Context, sink event.Sink) error {
	pumpCtx, stopPump := context.WithCancel(context.WithoutCancel(ctx))
	var pump sync.WaitGroup
	pump.Go(func() { p.pump(pumpCtx, sink) })
	err := p.serve(ctx)
	stopPump()
	pump.Wait()
	c := p.Counts()
	p.options.Log.Info("NRI: handler durations", "calls", c.Handler.Count, "p50", c.Handler.Quantile(0.5),
		"p99", c.Handler.Quantile(0.99), "max", c.Handler.Max, "dropped", c.Dropped)
	return err
}

// Counts are the plugin's counters.
type Counts struct {
	Connected  bool
	RuntimePID int
	Sessions   uint64
	// Sandbox events. Dropped counts those that found the queue full.
	Received, Dropped uint64
	Panics            uint64
	// Looks at other plugins that failed, or that were dropped.
	Unlooked uint64
	Handler  Times // of handlers that a pod waits for
}

// Name returns "nri".
func (*Plugin) Name() string { return "nri" }

// Stats returns the state and the counters.
func (p *Plugin) Stats() source.Stats {
	counts := p.Counts()
	s := source.Stats{
		State: "degraded", Features: []string{feature}, Losses: []string{queueFull}, Readings: counts.Readings(),
	}
	if counts.Connected {
		s.State = "registered"
	}
	return s
}

// Counts is safe for concurrent use.
func (p *Plugin) Counts() Counts {
	return Counts{
		Connected:  p.connected.Load(),
		RuntimePID: int(p.runtimePID.Load()),
		Sessions:   p.sessions.Load(),
		Received:   p.received.Load(),
		Dropped:    p.queue.dropped.Load(),
		Panics:     p.panics.Load(),
		Unlooked:   p.unlooked.Load(),
		Handler:    p.times.snapshot(),
	}
}

// Readings returns c as metrics.
func (c Counts) Readings() []meter.Reading {
	return []meter.Reading{
		meter.Count("nri_sessions_total", "NRI registrations.", c.Sessions),
		meter.Count("nri_events_total", "Sandbox events over NRI.", c.Received),
		meter.Count("nri_looks_failed_total",
			"Failed looks at other NRI plugins, and dropped ones: a late report may lack its cause.", c.Unlooked),
		meter.Count("nri_panics_total", "Recovered panics.", c.Panics),
		meter.Level("nri_handler_max_seconds",
			"The longest time a pod waited for a handler of cniscope.", c.Handler.Max.Seconds()),
	}
}

func (p *Plugin) survive(where string) {
	reason := recover()
	if reason == nil {
		return
	}
	p.panics.Add(1)
	p.panicOnce.Do(func() {
		p.options.Log.Error("NRI: survived a panic; further ones are only counted", "in", where,
			"panic", fmt.Sprintf("%.200q", fmt.Sprint(reason)))
	})
}

type pace struct {
	first   time.Duration // before the first reconnect
	missing time.Duration // maximum delay without a listener: a try costs nothing
	refused time.Duration // maximum delay with a listener: a try takes a lock of the node
	steady  time.Duration // session length that resets the delay
	start   time.Duration // registration timeout
	settle  time.Duration
	stop    time.Duration
}

// The runtime's timeouts are 5 s and 2 s (nri pkg/api: DefaultPluginRegistrationTimeout,
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
