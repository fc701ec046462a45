package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/source"
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

func run(ctx context.Context, file optionsFile) error {
	preinstalled := os.Getenv("NRI_PLUGIN_SOCKET") != ""
	level := &slog.LevelVar{}
	early := newLog("text", level, preinstalled) // what follows the options is not known yet
	from, err := file.source()
	if err != nil {
		return err
	}
	live, err := config.Open(from)
	if err != nil {
		early.Error("not starting", "error", err)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pods *identity
	patience := time.Duration(0)
	if preinstalled {
		if pods, err = register(ctx, early, live); err != nil {
			return err
		}
		patience = 2 * goodbye // the one before may not have let go yet
	}

	o := live.Options()
	log := newLog(o.Log.Format, level, preinstalled)
	release, err := lock.Wait(ctx, o.Run.Dir, patience)
	if err != nil {
		log.Error("not starting", "error", err)
		return err
	}
	defer release()
	n, err := newNode(o, log, level)
	if err != nil {
		return err
	}
	defer n.close()
	if pods == nil && o.NRI.Enabled {
		plugin, err := newPlugin(log, live)
		if err != nil {
			return err
		}
		pods = &identity{plugin, plugin.Attempted()}
	}
	reloadOnHangup(ctx, live)
	go live.Run(ctx, log, n.apply)

	log.Info("cniscope "+version(), "node", o.Resource.Node, "nri", pods != nil, "endpoint", o.Export.OTLP.Endpoint, "file", o.Export.File.Path)
	err = observe(ctx, log, o, pods, n.open.is, n.take)
	if errors.Is(err, nri.ErrRuntimeGone) {
		// The next containerd starts its own; staying would be one too many.
		log.Info("containerd is gone, and cniscope with it")
		err = nil
	}
	release() // whoever comes next need not wait until everything is sent
	for _, r := range n.pipeline.Flush() {
		n.result(r)
	}
	return err
}

// register begins with NRI, as a pre-installed plugin must: the runtime waits for it,
// and hands over options that all the rest depends on.
func register(ctx context.Context, log *slog.Logger, live *config.Live) (*identity, error) {
	plugin, err := newPlugin(log, live)
	if err != nil {
		return nil, err
	}
	begun := source.Begin(ctx, log, plugin)
	select {
	case <-plugin.Attempted():
	case <-ctx.Done():
	}
	return &identity{begun, plugin.Attempted()}, nil
}

func newPlugin(log *slog.Logger, live *config.Live) (*nri.Plugin, error) {
	return nri.New(nri.Options{Socket: live.Options().NRI.Socket, Log: log, Configure: live.Configure})
}

// reloadOnHangup has the options read again on SIGHUP, until ctx ends.
func reloadOnHangup(ctx context.Context, live *config.Live) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-hup:
				live.Reload()
			case <-ctx.Done():
				return
			}
		}
	}()
}

// node is a running cniscope behind its sources. One goroutine takes events; another
// one applies options.
type node struct {
	log      *slog.Logger
	level    *slog.LevelVar
	name     string
	pipeline *pipeline.Pipeline
	out      *destinations
	open     busy
	judge    atomic.Pointer[judge.Options] // for the next event; nil: as before
}

func newNode(o config.Options, log *slog.Logger, level *slog.LevelVar) (*node, error) {
	out, err := newDestinations(log, o.Export)
	if err != nil {
		return nil, err
	}
	boot := record.Host().BootID
	n := &node{
		log: log, level: level, name: o.Resource.Node, out: out,
		pipeline: settingsOf(o, boot).pipeline(boot),
	}
	n.setLevel(o)
	return n, nil
}

// take is the way of one event.
func (n *node) take(e event.Event) {
	if j := n.judge.Swap(nil); j != nil {
		n.pipeline.Judge = *j
	}
	say(n.log, e)
	for _, r := range n.pipeline.Apply(e) {
		n.result(r)
	}
	n.open.set(n.pipeline.Open())
}

func (n *node) result(r pipeline.Result) {
	report(n.log, n.name, r)
	if r.Judgement.Keep {
		n.out.send(r.Trace.Spans)
	}
}

// apply takes over the options that may change while cniscope runs. It does not wait
// for an event: on a quiet node there may be none for hours.
func (n *node) apply(o config.Options) {
	j := judgeOf(o)
	n.judge.Store(&j)
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
