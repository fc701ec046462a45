package probe

import (
	"context"
	"errors"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/winproc"
)

func attach(o Options) (*observer, error) {
	options := winproc.Options{
		Processes: o.Processes, Arguments: o.Arguments, Agents: o.Agents, Anchors: o.Anchors, Busy: o.Busy, System: winproc.NewSystem(), Log: o.Log,
	}
	if o.Source == SourceSnapshots {
		return snapshots(options, nil), nil
	}
	session, err := etw.Open(etw.Options{Name: "cniscope", Log: o.Log})
	if err == nil {
		return told(options, session), nil
	}
	if _, refused := errors.AsType[*etw.RefusedError](err); !refused || o.Source == SourceETW {
		return nil, err
	}
	return snapshots(options, err), nil
}

func told(o winproc.Options, session *etw.Session) *observer {
	s := winproc.New(o, session)
	observer := &observer{
		name: SourceETW, run: s.Run, close: session.Close,
		readings: func() []meter.Reading { return append(s.Stats().Readings(), session.Stats().Readings()...) },
	}
	if partial := session.Partial(); partial != nil {
		observer.instead = &event.Degraded{Feature: "event tracing", Reason: partial.Error() +
			"; one of its two sessions observes alone: of a command that is over before it was looked at less is known"}
	}
	return observer
}

func snapshots(o winproc.Options, instead error) *observer {
	var sink event.Sink
	teller := winproc.NewSnapshots(o.System, func(interval time.Duration) {
		now, _ := o.System.Clocks()
		sink(event.Event{Time: now, Body: &event.Origin{Source: SourceSnapshots, Resolution: int64(interval)}})
	})
	s := winproc.New(o, teller)
	observer := &observer{
		name: SourceSnapshots, close: func() error { return nil },
		run: func(ctx context.Context, to event.Sink) error {
			sink = to
			return s.Run(ctx, to)
		},
		readings: func() []meter.Reading { return s.Stats().Readings() },
	}
	if instead != nil {
		observer.instead = &event.Degraded{Feature: "event tracing", Reason: instead.Error() +
			"; snapshots of the process table take its place: a command that is shorter than the time between two is not seen"}
	}
	return observer
}
