package main

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/cniconf"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/privilege"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/ready"
	"github.com/cniscope/cniscope/pkg/relay"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/pkg/source"
)

// preinstalled tells whether containerd started this process as its NRI plugin.
func preinstalled() bool { return os.Getenv("NRI_PLUGIN_SOCKET") != "" }

// observer is the sources of this node. Those that speak to the runtime run from the
// start: it waits for a plugin to register, and for nothing else of ours.
type observer struct {
	log     *slog.Logger
	sources []source.Source
	started *source.Started // the plugin; nil without NRI
	plugin  *nri.Plugin     // nil without NRI
	relay   *relay.Relay    // nil without
	anchors *anchor.Set     // who the runtime is
	probe   attached
}

// newObserver registers with the runtime, and returns when that has been tried.
// configure gets the text of NRI's Configure.
func newObserver(ctx context.Context, log *slog.Logger, o config.Options, configure func(string) error) (*observer, error) {
	anchors := anchor.New()
	// Before the probe is loaded: it believes less where there is a runtime.
	if err := anchors.Ask(ctx, o.Runtime.Socket); err != nil {
		log.Debug("nobody serves containerd's socket", "error", err)
	}
	runtime := runtime.New(runtime.Options{Address: o.Runtime.Socket, Anchors: anchors, Log: log})
	n := &observer{log: log, sources: []source.Source{runtime}, anchors: anchors}
	if !o.NRI.Enabled && !preinstalled() {
		return n, nil
	}
	plugin, err := nri.New(nri.Options{
		Socket: o.NRI.Socket, Log: log, Configure: configure,
		Connected: runtime.Tell, Anchors: anchors,
	})
	if err != nil {
		return nil, err
	}
	n.plugin = plugin
	n.started = source.Start(ctx, log, plugin)
	n.sources = append(n.sources, n.started)
	select {
	case <-plugin.Attempted():
	case <-ctx.Done():
	}
	return n, nil
}

// prepare makes what the options that NRI handed over may have changed. Call it before run.
func (n *observer) prepare(l *life, o config.Options) (err error) {
	n.log = l.log
	n.anchors.Name(o.Probe.Callers, o.Probe.Rootless) // before the probe is loaded
	n.anchors.Watch(n.believe)
	if n.relay, err = newRelay(o, n.anchors, n.log); n.relay != nil {
		l.at(closeSinks, "relay", func(ctx context.Context) { endRelay(ctx, n.relay, n.log) })
	}
	return err
}

// apply takes over the options that may change while cniscope runs.
func (n *observer) apply(o config.Options) {
	if n.relay == nil {
		return
	}
	upstream, err := upstreamOf(o)
	if err != nil {
		n.log.Error("containerd's spans go on to where they went", "error", err)
		return
	}
	n.relay.SetUpstream(upstream)
}

// close ends what newObserver began, also where run was never called.
func (n *observer) close() {
	if n.started != nil {
		n.started.Close()
	}
}

// run hands the events of all sources to take until ctx ends. busy tells whether
// operations are open.
func (n *observer) run(ctx context.Context, o config.Options, busy func() bool, take event.Sink) error {
	sources := slices.Concat(n.sources, []source.Source{
		cniconf.New(cniconf.Options{Dir: o.CNI.ConfDir, Log: n.log}),
		ready.Source{Address: o.Runtime.Socket, Log: n.log},
		kernel{log: n.log, attached: &n.probe, options: probe.Options{
			Ring:      int(o.Probe.Ring),
			Processes: o.Limits.Processes,
			Arguments: arguments.Mode(o.Probe.Arguments),
			Detail:    probe.Detail(o.Probe.Detail),
			Linger:    o.Probe.Linger,
			Agents:    o.Probe.Agents,
			Depth:     o.Probe.AgentDepth,
			Anchors:   n.anchors,
			Rootless:  o.Probe.Rootless,
			Busy:      busy,
			Log:       n.log,
		}},
	})
	if n.relay != nil {
		sources = append(sources, n.relay)
	}
	if len(o.Probe.Callers) > 0 {
		sources = append(sources, callers{n.anchors, o.Probe})
	}
	err := source.Merge(ctx, n.log, sourcePatience, take, sources...)
	if n.plugin != nil {
		s := n.plugin.Stats()
		n.log.Info("NRI handlers, in which pods waited", "calls", s.Handler.Count, "p50", s.Handler.Quantile(0.5),
			"p99", s.Handler.Quantile(0.99), "max", s.Handler.Max, "dropped", s.Dropped)
	}
	return err
}

// believe says whose plugins are believed from now on.
func (n *observer) believe(anchors []anchor.Anchor) {
	if len(anchors) == 0 {
		n.log.Warn("no container runtime is known: until one is, whoever has CAP_SYS_ADMIN on the node is believed to run CNI plugins; see docs/trust.md",
			"remedy", "set runtime.socket or name its program in probe.callers")
		return
	}
	n.log.Info("believed to run CNI plugins", "who", anchors)
}

// believed names those that are there.
func (n *observer) believed() (who []string) {
	for _, a := range n.anchors.List() {
		if a.Alive() {
			who = append(who, a.String())
		}
	}
	return who
}

// callers looks for whom the operator names, as a source that says nothing.
type callers struct {
	anchors *anchor.Set
	options config.Probe
}

func (c callers) Run(ctx context.Context, _ event.Sink) error {
	c.anchors.Seek(ctx, c.options.Callers, c.options.Rootless)
	return nil
}

// kernel is the probe as a source, loaded when it is run.
type kernel struct {
	options  probe.Options
	log      *slog.Logger
	attached *attached
}

func (k kernel) String() string { return "kernel probe" }

func (k kernel) Run(ctx context.Context, sink event.Sink) error {
	p, err := probe.Open(k.options)
	if err != nil {
		return err
	}
	defer p.Close()
	k.attached.set(p)
	defer k.attached.set(nil)
	if kept, err := privilege.Drop(); err != nil {
		sink(event.Event{Time: clock.Monotonic(), Body: &event.Degraded{
			Feature: "dropping privileges", Reason: err.Error() + "; cniscope goes on with all it was given",
		}})
	} else {
		k.log.Debug("dropped the capabilities that are not needed any more", "kept", kept)
	}
	return p.Run(ctx, sink)
}

// attached is the probe while it is attached, for whoever asks how it does.
type attached struct {
	mu    sync.Mutex
	probe *probe.Probe
	ready chan struct{} // closed once it was attached
	once  sync.Once
}

func (a *attached) set(p *probe.Probe) {
	a.mu.Lock()
	a.probe = p
	a.mu.Unlock()
	if p != nil {
		a.attach()
	}
}

func (a *attached) attach() {
	a.once.Do(func() { close(a.first()) })
}

// first is closed when it is attached for the first time.
func (a *attached) first() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready == nil {
		a.ready = make(chan struct{})
	}
	return a.ready
}

// stats returns nil while it is not attached.
func (a *attached) stats() *probe.Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.probe == nil {
		return nil
	}
	s := a.probe.Stats()
	return &s
}

// is tells whether it is attached.
func (a *attached) is() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.probe != nil
}
