// Package destinations sends the spans of operations to an endpoint, to a file, or to both.
package destinations

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Destinations send finished operations to a backend, to a file, to both, or nowhere.
type Destinations struct {
	log   *slog.Logger
	spool *spool.Spool // nil: what waits, waits in memory
	all   []*destination
	// Fold is trace.fold_commands.
	Fold atomic.Bool
}

type destination struct {
	*export.Queue
	// section returns the options that open reads.
	section func(o config.Export) any
	// open returns nil if the options switch the destination off.
	open func(o config.Export) (queue.Sender, error)
	now  any // the section in use
}

// New opens all destinations. A new one is a queue.Sender, its section of the options, and a line here.
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

// Spooled reports whether operations that were not sent outlive the process.
func (d *Destinations) Spooled() bool { return d.spool != nil }

// handover is how long another process may hold the spool after it lost the node. The kernel closes the files of a
// killed process one after the other, and detaches BPF programs in between.
const handover = 3 * time.Second

// openSpool opens the spool of the options. If that fails, operations wait in memory.
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
		log.Warn("going on without the spool, operations wait in memory", "error", err)
		return nil
	}
	found := s.Found()
	if found.Cut > 0 {
		log.Warn("incomplete operation cut off the spool", "bytes", found.Cut)
	}
	if found.CursorLost {
		log.Warn("spool cursor lost, sending the whole spool again", "bytes", found.Waiting)
	}
	log.Info("operations wait in the spool", "dir", o.Dir, "waiting_bytes", found.Waiting)
	return s
}

// Set opens the destinations whose options changed. Queued operations go to the new ones. On an error, the old ones
// stay.
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
					_ = unused.Shutdown(context.Background()) // it has never connected
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

// OpenOTLP makes the client of the endpoint; nil if there is none.
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

// Endpoint returns how to reach the endpoint of the options, nil if there is none.
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

// Take queues the spans of a result, if it has any.
func (d *Destinations) Take(r pipeline.Result) {
	spans := r.Drawn().Spans
	if spans == nil {
		return
	}
	if d.Fold.Load() {
		spans = trace.Fold(spans)
	}
	for _, to := range d.all {
		to.Enqueue([]*tracepb.ResourceSpans{spans})
	}
}

// Close sends queued operations until ctx ends, and logs how many are lost.
func (d *Destinations) Close(ctx context.Context) {
	var closing sync.WaitGroup
	for _, to := range d.all {
		closing.Go(func() {
			undelivered, err := to.Close(ctx)
			if undelivered > 0 || err != nil {
				d.log.Warn("operations were not delivered", "destination", to.Name, "operations", undelivered, "error", err)
			}
		})
	}
	closing.Wait()
	if d.spool == nil {
		return
	}
	if waiting := d.spool.Stats().Waiting; waiting > 0 {
		d.log.Info("what was not delivered waits in the spool for the next start", "bytes", waiting)
	}
	if err := d.spool.Close(); err != nil {
		d.log.Warn("the spool did not end well", "error", err)
	}
}
