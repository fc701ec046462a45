package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
)

// goodbye is how long cniscope tries to deliver what waits when it is told to end:
// systemd and the kubelet wait longer.
const goodbye = 5 * time.Second

func runCmd() *cobra.Command {
	var file optionsFile
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Observe this node and export a trace of every CNI call",
		Long: `Observe this node and export a trace of every CNI call, until told to end.

It registers with containerd by NRI, as an external plugin, or as a pre-installed one
when containerd started it. Without NRI every call is still traced, with the identity
that CNI gives. Without a destination (export.otlp.endpoint or export.file.path) it
still writes a log line for each call that was slow or failed.

The options are read again when their file changes, and on SIGHUP.

Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), file) },
	}
	file.flag(cmd)
	return cmd
}

func run(ctx context.Context, file optionsFile) (err error) {
	level := &slog.LevelVar{}
	log := newLog("text", level)
	defer func() {
		if err != nil && preinstalled() { // nobody reads our standard error
			log.Error("ended", "error", err)
		}
	}()
	source, err := file.source()
	if err != nil {
		return err
	}
	options, err := config.Open(source)
	if err != nil {
		return err
	}
	log = newLog(options.Options().Log.Format, level)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	release, sources, err := begin(ctx, log, options)
	if err != nil {
		return err
	}
	defer release()
	o := options.Options() // NRI may have changed them
	log = newLog(o.Log.Format, level)
	if err := sources.prepare(o); err != nil {
		return err
	}
	defer sources.close()
	n, err := newNode(o, log, level)
	if err != nil {
		return err
	}
	defer n.close()
	n.telemetry = serveTelemetry(o, n, sources)
	defer n.telemetry.close()
	reloadOnHangup(ctx, options)
	go options.Run(ctx, log, func(o config.Options) {
		n.apply(o)
		sources.apply(o)
	})
	n.serve(ctx, o, sources)

	log.Info("cniscope "+version(), "node", o.Resource.Node, "nri", o.NRI.Enabled, "endpoint", o.Export.OTLP.Endpoint, "file", o.Export.File.Path)
	err = sources.run(ctx, o, n.open.is, n.take)
	if errors.Is(err, nri.ErrRuntimeGone) {
		// The next containerd starts its own; staying would be one too many.
		log.Info("containerd is gone, and cniscope with it")
		err = nil
	}
	release() // whoever comes next need not wait until everything is sent
	n.flush()
	return err
}

// begin takes the node and registers with the runtime. A pre-installed plugin registers
// first: the runtime waits for it, hands over options, and then the one before may not
// have let go yet.
func begin(ctx context.Context, log *slog.Logger, options *config.Live) (release func(), sources *observer, err error) {
	if preinstalled() {
		if sources, err = newObserver(ctx, log, options.Options(), options.Configure); err != nil {
			return nil, nil, err
		}
		release, err = lock.Wait(ctx, options.Options().Run.Dir, 2*goodbye)
		return release, sources, err
	}
	if release, err = lock.Take(options.Options().Run.Dir); err != nil {
		return nil, nil, err
	}
	if sources, err = newObserver(ctx, log, options.Options(), options.Configure); err != nil {
		release()
	}
	return release, sources, err
}

// reloadOnHangup reads the options again whenever SIGHUP comes, until ctx ends.
func reloadOnHangup(ctx context.Context, options *config.Live) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-hup:
				options.Reload()
			case <-ctx.Done():
				return
			}
		}
	}()
}

// node is a running cniscope behind its sources.
type node struct {
	mu       sync.Mutex // events and options come from two goroutines
	log      *slog.Logger
	level    *slog.LevelVar
	name     string
	pipeline *pipeline.Pipeline
	out      *destinations
	others   *broadcast // who records beside us
	open     busy
	pulse    pulse
	// telemetry is nil where it is not wanted.
	telemetry *telemetry
}

func newNode(o config.Options, log *slog.Logger, level *slog.LevelVar) (*node, error) {
	out, err := newDestinations(log, o.Export)
	if err != nil {
		return nil, err
	}
	boot := record.Host().BootID
	n := &node{
		log: log, level: level, name: o.Resource.Node, out: out, others: newBroadcast(),
		pipeline: settingsOf(o, boot).pipeline(boot),
	}
	n.setLevel(o)
	return n, nil
}

// serve answers cniscope ps, record, status and doctor until ctx ends. Without the socket
// everything else goes on.
func (n *node) serve(ctx context.Context, o config.Options, sources *observer) {
	l, err := control.Listen(o.Run.Dir)
	if err != nil {
		n.log.Warn("cniscope ps and record will not work beside this one", "error", err)
		return
	}
	go control.Serve(ctx, l, control.Handlers{
		Calls: func() []control.Call {
			n.mu.Lock()
			flights := n.pipeline.InFlight()
			n.mu.Unlock()
			return underWay(flights)
		},
		Node: func() control.Node {
			probe, nri := sources.state()
			return control.Node{Version: version(), PID: os.Getpid(), Parent: os.Getppid(), Probe: probe, NRI: nri}
		},
		Record: func(ctx context.Context, w http.ResponseWriter, flush func()) error {
			header, err := settingsOf(o, record.Host().BootID).header()
			if err != nil {
				return err
			}
			return n.others.record(ctx, header, w, flush)
		},
	}, n.log)
}

// take is the way of one event.
func (n *node) take(e event.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() {
		// One event that cannot be digested must not end the observation of a node.
		if r := recover(); r != nil {
			n.log.Error("an event caused a panic; please report this", "event", fmt.Sprintf("%T", e.Body), "panic", r, "stack", string(debug.Stack()))
		}
	}()
	n.pulse.begin(e.Time)
	defer n.pulse.end()
	say(n.log, e)
	n.others.send(e)
	n.telemetry.event(e)
	for _, r := range n.pipeline.Apply(e) {
		n.result(r)
	}
	n.open.set(n.pipeline.Open())
}

// flush sends what is still open, as far as it is known.
func (n *node) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.pipeline.Flush() {
		n.result(r)
	}
	n.open.set(0)
}

func (n *node) result(r pipeline.Result) {
	n.telemetry.result(r)
	switch {
	case r.Hung != nil:
		reportHung(n.log, n.name, r, n.pipeline.Now())
	case r.Outage != nil:
		reportOutage(n.log, n.name, r)
	case r.Over():
		report(n.log, n.name, r)
	}
	if r.Trace.Spans != nil {
		n.out.send(r.Trace.Spans)
	}
}

// apply takes over the options that may change while cniscope runs.
func (n *node) apply(o config.Options) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pipeline.Judge = judgeOf(o)
	n.setLevel(o)
	if err := n.out.set(o.Export); err != nil {
		n.log.Error("the destination stays as it was", "error", err)
	}
}

func (n *node) setLevel(o config.Options) {
	// The options were checked: the text is a level.
	var l slog.Level
	if l.UnmarshalText([]byte(o.Log.Level)) == nil {
		n.level.Set(l)
	}
}

func (n *node) close() {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	n.out.close(ctx)
}
