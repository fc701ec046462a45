package probe

import (
	"errors"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/pkg/probe/subprocess"
)

// attach prefers BPF programs. If both sources fail, the error has both causes.
func attach(o Options) (*observer, error) {
	if o.Source == SourceConnector {
		return connected(o, nil)
	}
	p, err := Open(o)
	if err == nil {
		o := &observer{
			name: p.source(), run: p.Run, close: p.Close,
			readings: func() []meter.Reading { return p.Stats().Readings() },
			wake:     p.kernel.Records.Wake,
		}
		if p.drops != nil {
			o.drops = p.drops
		}
		return o, nil
	}
	if _, refused := errors.AsType[*UnsupportedError](err); !refused || o.Source == SourceBPF {
		return nil, err
	}
	c, err2 := connected(o, err)
	if err2 != nil {
		return nil, errors.Join(err, err2)
	}
	return c, nil
}

func connected(o Options, instead error) (*observer, error) {
	by, err := connect(o)
	if err != nil {
		return nil, err
	}
	by.name = SourceConnector
	if instead != nil {
		by.instead = &event.Degraded{Feature: "BPF programs", Reason: instead.Error() +
			"; the process connector observes plugins and commands instead, and nothing of what these ask of the kernel or wait for"}
	}
	return by, nil
}

func connect(o Options) (*observer, error) {
	options := connector.Options{
		Processes: o.Processes, Arguments: o.Arguments, Anchors: o.Anchors, Rootless: o.Rootless, Busy: o.Busy, Log: o.Log,
	}
	if len(o.Apart) > 0 {
		c, err := subprocess.Start(options, o.Apart)
		if err == nil {
			return &observer{run: c.Run, close: c.Close, readings: func() []meter.Reading { return c.Stats().Readings() }}, nil
		}
		if _, refused := errors.AsType[*connector.UnsupportedError](err); refused {
			return nil, err
		}
		o.Log.Warn("process connector not in a process of its own, short-lived plugins may be missed", "error", err)
	}
	c, err := connector.Open(options)
	if err != nil {
		return nil, err
	}
	return &observer{network: true, run: c.Run, close: c.Close, readings: func() []meter.Reading { return c.Stats().Readings() }}, nil
}
