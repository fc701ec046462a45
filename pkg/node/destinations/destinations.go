// Package destinations sends operations' spans to an endpoint, a file, or both.
package destinations

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Destinations are the open destinations.
type Destinations struct {
	log   *slog.Logger
	spool *spool.Spool // nil: operations wait in memory
	all   []*destination
	Fold  atomic.Bool
}

type destination struct {
	*export.Queue
	section func(o config.Export) any
	open    func(o config.Export) (queue.Sender, error)
	now     any
}

// New opens all destinations: each a queue.Sender, a section of the options, and a line here.
func New(log *slog.Logger, o config.Export) (*Destinations, error) {
	ring := openSpool(log, o.Spool)
	waiting := func(name string, in *spool.Spool) *export.Queue {
		return export.NewQueue(nil, queue.Options{Name: name, Items: o.Queue, Spool: in, Log: log})
	}
	d := &Destinations{log: log, spool: ring, all: []*destination{
		{Queue: waiting("otlp", ring), section: func(o config.Export) any { return o.OTLP }, open: OpenOTLP},
		{Queue: waiting("file", nil), section: func(o config.Export) any { return o.File }, open: openFile},
	}}
	if err := d.Set(o); err != nil {
		d.Close(context.Background())
		return nil, err
	}
	return d, nil
}

// Spooled reports whether unsent operations outlive the process.
func (d *Destinations) Spooled() bool { return d.spool != nil }

// handover bounds another process's hold on the spool after the node: the kernel closes a killed process's files one
// by one, and detaches BPF programs in between.
const handover = 3 * time.Second

func openSpool(log *slog.Logger, o config.Spool) *spool.Spool {
	if o.Dir == "" {
		return nil
	}
	options := spool.Options{Dir: o.Dir, MaxBytes: o.MaxBytes, MaxAge: o.MaxAge}
	s, err := spool.Open(options)
	for until := time.Now().Add(handover); errors.Is(err, spool.ErrHeld) && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
		s, err = spool.Open(options)
	}
	if err != nil {
		log.Warn("spool unavailable, queueing in memory", "error", err)
		return nil
	}
	found := s.Found()
	if found.Cut > 0 {
		log.Warn("incomplete trace cut off the spool", "bytes", found.Cut)
	}
	if found.CursorLost {
		log.Warn("spool cursor lost, sending the whole spool again", "bytes", found.Waiting)
	}
	log.Info("traces wait in the spool", "dir", o.Dir, "waiting_bytes", found.Waiting)
	return s
}

// Set opens changed destinations, which take over queued operations. On an error, the old ones stay.
func (d *Destinations) Set(o config.Export) error {
	opened := map[*destination]queue.Sender{}
	for _, to := range d.all {
		if reflect.DeepEqual(to.section(o), to.now) {
			continue
		}
		exporter, err := to.open(o)
		if err != nil {
			for _, unused := range opened {
				if unused != nil {
					_ = unused.Shutdown(context.Background())
				}
			}
			return err
		}
		opened[to] = exporter
	}
	for to, exporter := range opened {
		to.SetSender(exporter)
		to.now = to.section(o)
	}
	return nil
}

func openFile(o config.Export) (queue.Sender, error) {
	if o.File.Path == "" {
		return nil, nil
	}
	return export.NewFile(o.File.Path, o.File.MaxBytes), nil
}

// OpenOTLP returns the endpoint's client, nil without one.
func OpenOTLP(o config.Export) (queue.Sender, error) {
	to, err := Endpoint(o.OTLP)
	if to == nil {
		return nil, err
	}
	client, err := otlp.New(*to)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// Endpoint returns how to reach the endpoint, nil without one.
func Endpoint(o config.OTLP) (*otlp.Options, error) {
	endpoint, _ := o.Target()
	if endpoint == "" {
		return nil, nil
	}
	tls, err := tlsOf(o)
	if err != nil {
		return nil, err
	}
	return &otlp.Options{
		Endpoint: endpoint, Path: o.Path(), TLS: tls, Timeout: o.Timeout,
		Headers: reveal(o.Headers), Gzip: o.Compression == "gzip",
	}, nil
}

func reveal(secrets map[string]config.Secret) map[string]string {
	headers := map[string]string{}
	for name, value := range secrets {
		headers[name] = value.Reveal()
	}
	return headers
}

// Readings returns the metrics of all destinations.
func (d *Destinations) Readings() (all []meter.Reading) {
	now := time.Now()
	for _, to := range d.all {
		all = append(all, export.Readings(to.Stats(), now)...)
	}
	return all
}

// Take queues a result's spans.
func (d *Destinations) Take(r pipeline.Result) {
	all := r.Drawn()
	if all.Spans == nil {
		return
	}
	if d.Fold.Load() {
		all = trace.Of(trace.Fold(all.Spans))
	}
	for _, to := range d.all {
		to.Enqueue(all.Spans, all.Encoded)
	}
}

// Close sends queued operations until ctx ends.
func (d *Destinations) Close(ctx context.Context) {
	var closing sync.WaitGroup
	for _, to := range d.all {
		closing.Go(func() {
			undelivered, err := to.Close(ctx)
			if undelivered == 0 && err != nil {
				d.log.Warn("destination not closed cleanly", "destination", to.Name, "error", err)
			}
			if undelivered > 0 {
				said := []any{"destination", to.Name, "operations", undelivered}
				if s := to.Stats(); err == nil && !s.FailingSince.IsZero() {
					err = errors.New(s.LastError)
				}
				if err != nil {
					said = append(said, "error", err)
				}
				d.log.Warn("traces dropped at exit", said...)
			}
		})
	}
	closing.Wait()
	if d.spool == nil {
		return
	}
	if waiting := d.spool.Stats().Waiting; waiting > 0 {
		d.log.Info("undelivered traces wait in the spool", "bytes", waiting)
	}
	if err := d.spool.Close(); err != nil {
		d.log.Warn("spool not closed cleanly", "error", err)
	}
}
