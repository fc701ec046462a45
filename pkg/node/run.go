// Package node is the daemon: it runs a node's sources, the pipeline, and the consumers.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/history"
	"github.com/cniscope/cniscope/pkg/kubelet"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/node/destinations"
	"github.com/cniscope/cniscope/pkg/node/learned"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/removal"
	"github.com/cniscope/cniscope/pkg/settings"
)

// Options start the daemon.
type Options struct {
	Version string
	Source  config.Source
	Examine func(ctx context.Context, o config.Options) ([]byte, error)
}

// Run observes the node until ctx, or the containerd that started this process, ends. If another cniscope holds the
// node, the error is a *lock.HeldError.
func Run(ctx context.Context, with Options) (err error) {
	// The reader of the log may exit.
	signal.Ignore(syscall.SIGPIPE)
	out := openLog()
	defer func() {
		why := err
		if !unattended() {
			why = nil
		}
		out.close(why)
	}()
	options, err := config.Open(with.Source)
	if err != nil {
		return err
	}
	l := newLife(ctx, out.logger(options.Options().Log.Format))
	defer func() { err = errors.Join(err, l.end()) }()
	mapSparsely(l.log)
	// Even the return may block, for example on standard error.
	context.AfterFunc(l.ctx, func() { time.AfterFunc(ShutdownMax()+5*time.Second, func() { os.Exit(1) }) })
	sources, err := begin(l, options)
	if err != nil && l.ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	o := options.Options() // NRI may have changed them
	l.log = out.logger(o.Log.Format)
	l.start("warnings", func(ctx context.Context) {
		for _, w := range with.Source.Warnings(ctx, o) {
			l.log.Warn(w.What, "option", w.Key, "remedy", w.Remedy)
		}
	})
	n, err := newNode(o, with.Version, l.log, out.level)
	if err != nil {
		return err
	}
	n.logLost, n.examine = out.lost, with.Examine
	l.at(flushOpen, "what is open", n.flush)
	l.at(closeSinks, "what is usual", n.leaveLearnt)
	l.at(closeSinks, "destinations", func(ctx context.Context) { n.close(ctx, l.successor()) })
	sources.held = n.leaks.held
	if err := sources.prepare(l, o, n.waits, n.learnt.Key()); err != nil {
		return err
	}
	n.late.looks = sources.firsts
	n.telemetry = serveTelemetry(o, n, sources)
	l.at(closeSinks, "metrics", func(context.Context) { n.telemetry.close() })
	n.consume(o)
	n.attend(l, options, sources)
	n.serve(l, o, sources)
	l.log.Info("cniscope "+with.Version, "node", o.Resource.Node, "nri", o.NRI.Enabled,
		"endpoint", o.Export.OTLP.Endpoint, "file", o.Export.File.Path)
	observed := make(chan error, 1)
	l.start("sources", func(ctx context.Context) {
		err := sources.run(ctx, n.take)
		observed <- err
		l.stop(err)
	})
	<-l.ctx.Done()
	stuck := l.end()
	select {
	case err = <-observed:
	default: // it is stuck
	}
	if l.successor() {
		// The next containerd starts its own cniscope.
		l.log.Info("containerd exited, stopping")
		err = nil
	}
	return errors.Join(err, stuck)
}

func (n *node) attend(l *life, options *config.Live, sources *observer) {
	l.start("options", func(ctx context.Context) {
		options.Run(ctx, l.log, func(o config.Options) {
			n.apply(o)
			sources.apply(o)
		})
	})
	l.start("SIGHUP", reloadOnHangup(options))
	l.start("systemd", func(ctx context.Context) { tellSystemd(ctx, l.log, sources.attached, n.alive) })
	l.start("memory", func(ctx context.Context) { releaseUnused(ctx, l.log, sources.attached) })
	l.start("service manager", func(ctx context.Context) {
		select {
		case <-sources.attached:
			tellStarted(ctx)
		case <-ctx.Done():
		}
	})
	l.start("what is usual", n.keepLearnt)
	o := options.Options()
	l.start("removals", func(ctx context.Context) { n.watchRemovals(ctx, o.Slow.Hung, sources.runtime) })
	l.start("leaks", func(ctx context.Context) { n.leaks.look(ctx, n, o) })
}

// begin locks the node and registers with the runtime. A pre-installed plugin registers first: the runtime waits for
// it, hands over options, and the predecessor may hold the node.
func begin(l *life, options *config.Live) (sources *observer, err error) {
	take := func() error {
		release, err := takeNode(l, options)
		o := options.Options()
		if err == nil {
			l.at(letGo, "the node", func(context.Context) {
				control.Forget(o.State.Dir)
				control.ForgetRead(o.ReadFolder())
				release()
				leaveNode(o.State.Dir, filepath.Dir(o.NRI.Socket))
			})
		}
		return err
	}
	if !Preinstalled() {
		if err := take(); err != nil {
			return nil, err
		}
	}
	sources = newObserver(l.ctx, l.log, options.Options(), options.Configure)
	l.at(stopSources, "NRI", func(context.Context) { sources.close() })
	if Preinstalled() {
		return sources, take()
	}
	return sources, nil
}

func reloadOnHangup(options *config.Live) func(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	return func(ctx context.Context) {
		for {
			select {
			case <-hup:
				options.Reload()
			case <-ctx.Done():
				return
			}
		}
	}
}

type node struct {
	mu       sync.Mutex // guards events and options
	log      *slog.Logger
	level    *slog.LevelVar
	name     string
	version  string
	pipeline *pipeline.Pipeline
	opening  opening
	open     atomic.Bool // operations are open
	pulse    pulse

	consumers consumers
	out       *destinations.Destinations
	recent    recent
	leaks     leaks
	removing  *removal.Watch
	late      latecomers
	history   *history.History
	learnt    learned.Store
	overload  overload
	burst     burst
	telemetry *telemetry
	logLost   func() map[string]uint64
	examine   func(ctx context.Context, o config.Options) ([]byte, error)
}

func newNode(o config.Options, version string, log *slog.Logger, level *slog.LevelVar) (*node, error) {
	out, err := destinations.New(log, o.Export)
	if err != nil {
		return nil, err
	}
	boot := record.Host().BootID
	s, keeps := settings.Of(o, boot, version), learned.Open(o, log)
	if o.Slow.Baseline {
		s.Baseline = keeps.Load()
	}
	n := &node{
		log: log, level: level, name: o.Resource.Node, version: version,
		out: out, learnt: keeps, pipeline: s.Pipeline(boot), opening: opening{},
		history: history.New(o.Resource.Node, time.Now()), late: latecomers{log: log, node: o.Resource.Node},
		overload: overload{log: log}, burst: burst{log: log},
		consumers: consumers{log: log, lost: map[string]*lost{}}, removing: removal.NewWatch(),
	}
	n.pipeline.Whole = true
	n.out.Fold.Store(o.Trace.FoldCommands)
	setLevel(n.level, o)
	return n, nil
}

func (n *node) consume(o config.Options) {
	start := func(name string, c Consumer) { n.consumers.join(name, c, max(queueMin, o.Limits.Operations)) }
	start("log", lines{n.log, n.name})
	start("overload", &n.overload)
	start("burst", &n.burst)
	start("first connection", results(n.late.take))
	start("leaks", &n.leaks)
	start("doctor", results(n.recent.take))
	start("baseline", results(n.reportUsual))
	start("history", results(n.history.Take))
	start("export", results(n.out.Take))
	if n.telemetry != nil {
		start("metrics", n.telemetry.counts)
	}
}

const queueMin = 1024

func (n *node) serve(l *life, o config.Options, sources *observer) {
	socket, err := control.Listen(o.State.Dir)
	if err != nil {
		n.log.Warn("control socket unavailable, cniscope ps and record will not work", "error", err)
		return
	}
	handlers := control.Handlers{
		ReadHandlers: control.ReadHandlers{
			Calls: func() []control.Call {
				calls := underWay(n.inFlight())
				for _, s := range n.removals(sources.runtime()) {
					calls = append(calls, inRemoval(s))
				}
				return calls
			},
			Node: func() control.Node {
				return control.Node{
					Version: n.version, PID: os.Getpid(), Parent: os.Getppid(), StartedBy: startedBy(), Trusted: sources.trusted(),
					Probe: sources.state("probe"), NRI: sources.state("nri"), Missed: sources.missed(),
				}
			},
			Operations: n.history.Operations, Spans: n.history.Whole, APIServer: kubelet.APIServer,
			Doctor: control.Examined(func(ctx context.Context) ([]byte, error) { return n.examine(ctx, o) }),
			Record: func(ctx context.Context, w http.ResponseWriter, flush func()) error {
				return n.record(ctx, settings.Of(o, record.Host().BootID, n.version), w, flush, sources.probe.Wake)
			},
		},
		Recent: func() control.Recent {
			r := n.recent.list()
			r.Held = n.leaks.held()
			return r
		},
		Baseline: n.usually,
	}
	l.start("control socket", func(ctx context.Context) { control.Serve(ctx, socket, handlers, n.log) })
	n.serveReaders(l, o, handlers.ReadHandlers)
}

func (n *node) inFlight() []model.Flight {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pipeline.InFlight()
}

func (n *node) waits() bool { return n.open.Load() || n.consumers.waits() }

func (n *node) take(e event.Event) {
	_, tick := e.Body.(*event.Tick)
	open := n.open.Load()
	silent := n.pulse.begin(clock.Monotonic(), tick || !open) // the event may be old
	defer n.pulse.end()
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() {
		// One event must not end the observation.
		if r := recover(); r != nil {
			n.log.Error("an event caused a panic; please report this",
				"event", fmt.Sprintf("%T", e.Body), "panic", r, "stack", string(debug.Stack()))
		}
	}()
	if n.telemetry != nil && tick && open {
		n.telemetry.counts.Gap(silent)
	}
	n.opening.remember(e)
	n.consumers.event(e)
	for _, r := range n.pipeline.Apply(e) {
		n.consumers.result(r, n.pipeline.Now())
	}
	n.open.Store(n.pipeline.Busy())
}

func (n *node) alive() (report string, ok bool) {
	return n.pulse.check(clock.Monotonic(), n.open.Load())
}

func (n *node) flush(ctx context.Context) {
	n.mu.Lock()
	for _, r := range n.pipeline.Flush() {
		n.consumers.result(r, n.pipeline.Now())
	}
	n.open.Store(false)
	n.mu.Unlock()
	n.consumers.close(ctx)
}

func (n *node) apply(o config.Options) {
	n.mu.Lock()
	begins := o.Slow.Baseline && !n.pipeline.Judge.Baseline
	n.pipeline.Judge = settings.JudgeOf(o)
	n.mu.Unlock()
	n.out.Fold.Store(o.Trace.FoldCommands)
	if begins {
		n.beginLearning()
	}
	setLevel(n.level, o)
	// Unlocked: it reads certificates, and a disk may hang.
	if err := n.out.Set(o.Export); err != nil {
		n.log.Error("destination unchanged", "error", err)
	}
}

func setLevel(level *slog.LevelVar, o config.Options) {
	var l slog.Level
	if l.UnmarshalText([]byte(o.Log.Level)) == nil {
		level.Set(l)
	}
}

// close delivers queues for up to goodbye, or 1 s if a successor can send the spool.
func (n *node) close(ctx context.Context, successor bool) {
	patience := goodbye
	if successor && n.out.Spooled() {
		patience = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n.out.Close(ctx)
}
