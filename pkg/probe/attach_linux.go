package probe

import (
	"errors"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/probe/connector"
)

// attach begins to observe by the means that o names. Where both are refused the error says why of each.
func attach(o Options) (*observer, error) {
	if o.Source == SourceConnector {
		return connected(o, nil)
	}
	p, err := Open(o)
	if err == nil {
		return &observer{
			name: p.source(), run: p.Run, close: p.Close,
			readings: func() []meter.Reading { return p.Stats().Readings() },
		}, nil
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

// connected observes by the process connector, since BPF is refused for that reason.
func connected(o Options, instead error) (*observer, error) {
	c, err := connector.Open(connector.Options{
		Processes: o.Processes, Arguments: o.Arguments, Anchors: o.Anchors, Rootless: o.Rootless, Busy: o.Busy, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	by := &observer{
		name: SourceConnector, run: c.Run, close: c.Close,
		readings: func() []meter.Reading { return c.Stats().Readings() },
	}
	if instead != nil {
		by.instead = &event.Degraded{Feature: "BPF programs", Reason: instead.Error() +
			"; the process connector observes plugins and commands instead, and nothing of what these ask of the kernel or wait for"}
	}
	return by, nil
}
