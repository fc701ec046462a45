package main

import (
	"context"
	"log/slog"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/cniconf"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/privilege"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/pkg/source"
)

// identity is the source of what the runtime knows of its pods.
type identity struct {
	source.Source
	attempted <-chan struct{} // see nri.Plugin
}

// observe runs all sources of this node and hands their events to take until ctx ends.
// pods is nil where there is no NRI; busy tells whether operations are open.
func observe(ctx context.Context, log *slog.Logger, o config.Options, pods *identity, busy func() bool, take event.Sink) error {
	sources := []source.Source{
		cniconf.New(cniconf.Options{Dir: o.CNI.ConfDir, Log: log}),
		runtime.New(runtime.Options{Address: o.Containerd.Address, Log: log}),
	}
	var attempted <-chan struct{}
	if pods != nil {
		sources = append(sources, pods)
		attempted = pods.attempted
	}
	sources = append(sources, kernel{attempted: attempted, log: log, options: probe.Options{
		Ring:      int(o.Probe.Ring),
		Processes: o.Limits.Processes,
		Arguments: probe.Arguments(o.Probe.Arguments),
		Busy:      busy,
		Log:       log,
	}})
	return source.Merge(ctx, log, take, sources...)
}

// kernel is the probe as a source: loaded after NRI had its first try, because the
// runtime waits for a plugin to register, and for nothing else of ours.
type kernel struct {
	attempted <-chan struct{} // nil: there is nothing to wait for
	options   probe.Options
	log       *slog.Logger
}

func (k kernel) Run(ctx context.Context, sink event.Sink) error {
	if k.attempted != nil {
		select {
		case <-k.attempted:
		case <-ctx.Done():
			return nil
		}
	}
	p, err := probe.Open(k.options)
	if err != nil {
		return err
	}
	defer p.Close()
	if dropped, err := privilege.Drop(); err != nil {
		sink(event.Event{Time: clock.Monotonic(), Body: &event.Degraded{
			Feature: "dropping privileges", Reason: err.Error() + "; cniscope goes on with all it was given",
		}})
	} else {
		k.log.Debug("dropped the capabilities that are not needed any more", "kept", dropped)
	}
	return p.Run(ctx, sink)
}
