package node

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/baggage"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/child"
	"github.com/cniscope/cniscope/pkg/cniconf"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/firewall"
	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/node/destinations"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/privilege"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/builds"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/programs"
	"github.com/cniscope/cniscope/pkg/ready"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/relay"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/pkg/source"
)

// Connector is the command that reads the process connector.
const Connector = "connector"

// Firewall is the command that lists the node's chains.
const Firewall = "firewall"

// Preinstalled reports whether containerd started this process as a plugin.
func Preinstalled() bool { return os.Getenv("NRI_PLUGIN_SOCKET") != "" }

// observer is the node's sources. Those of the runtime run from the start: it waits for plugins to register.
type observer struct {
	log      *slog.Logger
	sources  []source.Source
	started  *source.Started // nil without NRI
	nri      *nri.Plugin
	relay    *relay.Relay
	programs *programs.Source
	firsts   *firstconn.Source
	anchors  *anchor.Set
	attached chan struct{} // closed once the probe is attached
	probe    *probe.Source
	trace    config.Trace
	held     func() []leak.Attachment
}

func newObserver(ctx context.Context, log *slog.Logger, o config.Options, configure func(string) error) *observer {
	anchors := anchor.New()
	o.Runtime.Socket = runtime.Find(o.Runtime.Socket)
	// Before the probe: with a runtime it trusts fewer processes.
	if err := anchors.Ask(ctx, o.Runtime.Socket); err != nil {
		log.Debug("runtime socket not served", "socket", o.Runtime.Socket, "error", err)
	}
	runtime := runtime.New(runtime.Options{Address: o.Runtime.Socket, Anchors: anchors, Log: log})
	n := &observer{log: log, sources: []source.Source{runtime}, anchors: anchors, attached: make(chan struct{})}
	if !o.NRI.Enabled && !Preinstalled() {
		return n
	}
	plugin := nri.New(nri.Options{
		Socket: o.NRI.Socket, Log: log, Configure: configure,
		Connected: runtime.Tell, Anchors: anchors, Plugins: nri.NewSearch(o.NRI.Socket).List,
	})
	n.started, n.nri = source.Start(ctx, log, plugin), plugin
	n.sources = append(n.sources, n.started)
	select {
	case <-plugin.Attempted():
	case <-ctx.Done():
	}
	return n
}

// prepare makes the sources whose options NRI may have changed. key is for digests of configurations.
func (n *observer) prepare(l *life, o config.Options, busy func() bool, key []byte) (err error) {
	n.log, n.trace = l.log, o.Trace
	n.anchors.Name(o.Probe.Callers, o.Probe.Rootless) // before the probe is loaded
	n.anchors.Watch(n.believe)
	if len(o.Probe.Callers) > 0 {
		l.start("callers", func(ctx context.Context) { n.anchors.Seek(ctx, o.Probe.Callers, o.Probe.Rootless) })
	}
	n.probe = probe.NewSource(probe.Options{
		Source:    o.Probe.Source,
		Ring:      int(o.Probe.Ring),
		Processes: o.Limits.Processes,
		Arguments: arguments.Mode(o.Probe.Arguments),
		Off:       !o.Probe.Enabled,
		Detail:    probe.Detail(o.Probe.Detail),
		Linger:    o.Probe.Linger,
		MinSpan:   o.Limits.MinSpan,
		Agents:    o.Probe.Agents,
		Depth:     o.Probe.AgentDepth,
		Anchors:   n.anchors,
		Rootless:  o.Probe.Rootless,
		Apart:     []string{child.Self, Connector},
		Busy:      busy,
		Log:       n.log,
	}, sync.OnceFunc(func() { close(n.attached) }))
	n.programs, n.firsts = programsOf(o), n.firstsOf(l, o)
	n.sources = append(n.sources,
		n.programs,
		n.firsts,
		cniconf.New(cniconf.Options{
			Dir: o.CNI.ConfDir, Digest: cniconf.Digest{Key: key, Secret: redact.Confidential}, Log: n.log,
		}),
		readinessOf(o),
		n.probe,
	)
	if n.relay, err = newRelay(o, n.anchors, n.log); n.relay != nil {
		n.sources = append(n.sources, n.relay)
		l.at(closeSinks, "relay", func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, goodbye/2)
			defer cancel()
			n.relay.Close(ctx)
		})
	}
	return err
}

func readinessOf(o config.Options) ready.Source {
	ask := asking(o, readinessPatience)
	look := func(ctx context.Context) (event.Lack, string) { return doctor.Missing(ctx, ask) }
	return ready.Source{Address: ask.Address, Overdue: o.Slow.Readiness, Look: look}
}

func programsOf(o config.Options) *programs.Source {
	ask := asking(o, readinessPatience)
	return programs.New(programs.Node{
		Dirs:   func(ctx context.Context) (int, []string, bool) { return doctor.PluginDirs(ctx, ask) },
		Faults: new(doctor.Programs).Faults, LockFile: programs.LockFile,
	})
}

func (n *observer) firstsOf(l *life, o config.Options) *firstconn.Source {
	ask := asking(o, readinessPatience)
	residents := &procfs.Residents{}
	if privilege.Network() { // the probe drops the capability
		p, err := firewall.Start([]string{child.Self, Firewall})
		if err != nil {
			n.log.Warn("feature unavailable", "feature", Firewall, "reason", err)
		} else {
			var once sync.Once
			ask.Chains = func(ctx context.Context) ([]fact.Chain, error) {
				all, err := p.Chains(ctx)
				if err != nil {
					once.Do(func() { n.log.Warn("feature unavailable", "feature", Firewall, "reason", err) })
				}
				return all, err
			}
			l.at(stopSources, "firewall", func(context.Context) { p.Close() })
		}
	}
	return firstconn.New(firstconn.Node{
		Tries: firstconn.Tries, Drops: n.probe.Drops, Residents: residents,
		InTheWay: func(ctx context.Context, sandboxes []string, node bool) map[string][]event.Obstacle {
			want := doctor.Want{Sandboxes: sandboxes, Node: node, Held: n.held(), Residents: residents}
			return doctor.InTheWay(ctx, ask, want)
		},
		Found: func(ctx context.Context, w event.Want) *event.Found { return doctor.Needed(ctx, ask, w) },
	}, o.Slow.FirstConnection, o.Limits.Operations)
}

func asking(o config.Options, patience time.Duration) doctor.Options {
	return doctor.Options{
		Address: runtime.Find(o.Runtime.Socket), ConfDir: o.CNI.ConfDir, Patience: patience, Leak: o.Leaks.After,
	}
}

const readinessPatience = 3 * time.Second

func (n *observer) apply(o config.Options) {
	n.probe.Switch(!o.Probe.Enabled, probe.Detail(o.Probe.Detail))
	if n.relay == nil {
		return
	}
	upstream, err := destinations.Endpoint(o.RelayUpstream())
	if err == nil {
		err = n.relay.SetUpstream(upstream)
	}
	if err != nil {
		n.log.Error("relay keeps its former upstream", "error", err)
	}
}

func (n *observer) runtime() int {
	if n.nri == nil {
		return 0
	}
	return n.nri.Counts().RuntimePID
}

func (n *observer) close() {
	if n.started != nil {
		n.started.Close()
	}
}

func (n *observer) run(ctx context.Context, take event.Sink) error {
	known := builds.New()
	go known.Run(ctx)
	return source.Merge(ctx, n.log, sourcePatience, func(e event.Event) {
		choose(e, n.trace)
		known.Tell(e)
		n.programs.Tell(e)
		n.firsts.Tell(e)
		n.await(e)
		take(e)
	}, n.sources...)
}

func (n *observer) await(e event.Event) {
	if n.nri == nil {
		return
	}
	switch b := e.Body.(type) {
	case *event.Exec:
		switch {
		case !b.Root || b.Caller != event.CallerRuntime || b.Call == nil:
		case b.Call.Command == "ADD":
			n.nri.Awake(b.Call.ContainerID)
		case b.Call.Command == "DEL" && b.Call.NetNS == "": // once more by a removal
			n.nri.Removing(b.Call.ContainerID)
		}
	case *event.Step:
		if b.Verb == "create" {
			n.nri.Await(b.SandboxID)
		}
	}
}

func choose(e event.Event, o config.Trace) {
	switch b := e.Body.(type) {
	case *event.Sandbox:
		maps.DeleteFunc(b.Labels, func(key, _ string) bool { return !matches(o.Labels, key) })
	case *event.Exec:
		if b.Call == nil || b.Call.Baggage == "" {
			return
		}
		all, _ := baggage.Parse(b.Call.Baggage)
		var chosen []string
		for _, m := range all.Members() {
			if bare, err := baggage.NewMemberRaw(m.Key(), m.Value()); err == nil && matches(o.Baggage, m.Key()) {
				chosen = append(chosen, bare.String())
			}
		}
		slices.Sort(chosen)
		b.Call.Baggage = strings.Join(chosen, ",")
	}
}

func matches(patterns []string, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, _ := path.Match(pattern, key)
		return is
	})
}

func (n *observer) state(name string) string {
	for _, s := range n.sources {
		if s.Name() == name {
			return s.Stats().State
		}
	}
	return "off"
}

func (n *observer) missed() (all uint64) {
	for _, s := range n.sources {
		all += s.Stats().Missed
	}
	return all
}

func (n *observer) believe(anchors []anchor.Anchor) {
	if len(anchors) == 0 {
		n.log.Warn("container runtime not found, trusting any process with CAP_SYS_ADMIN",
			"remedy", "set runtime.socket or name its program in probe.callers")
		return
	}
	n.log.Info("trusted to run CNI plugins", "processes", anchors)
}

func (n *observer) trusted() (who []string) {
	for _, a := range n.anchors.List() {
		if a.Alive() {
			who = append(who, a.String())
		}
	}
	return who
}

func newRelay(o config.Options, anchors *anchor.Set, log *slog.Logger) (*relay.Relay, error) {
	if o.Relay.Listen == "" {
		return nil, nil
	}
	upstream, err := destinations.Endpoint(o.RelayUpstream())
	if err != nil {
		return nil, err
	}
	r, err := relay.New(relay.Options{Listen: o.Relay.Listen, Bytes: int(o.Relay.Queue), Runtime: anchors.PIDs, Log: log})
	if err != nil {
		return nil, err
	}
	if upstream == nil {
		log.Warn("no upstream for containerd's spans", "remedy", "set relay.upstream or export.otlp.endpoint",
			"listen", o.Relay.Listen)
	}
	return r, r.SetUpstream(upstream)
}
