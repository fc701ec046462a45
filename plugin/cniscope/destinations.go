package main

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/spool"
)

// destinations are where finished operations go: to a backend, to a file, to both, or,
// while nothing is set, nowhere.
type destinations struct {
	log        *slog.Logger
	spool      *spool.Spool // nil: what waits, waits in memory
	otlp, file *export.Queue
	now        config.Export
}

func newDestinations(log *slog.Logger, o config.Export) (*destinations, error) {
	ring := openSpool(log, o.Spool)
	d := &destinations{
		log: log, spool: ring,
		otlp: export.NewQueue(nil, export.QueueOptions{Name: "otlp", Operations: o.Queue, Spool: ring, Log: log}),
		file: export.NewQueue(nil, export.QueueOptions{Name: "file", Operations: o.Queue, Log: log}),
	}
	if err := d.set(o); err != nil {
		d.close(context.Background())
		return nil, err
	}
	return d, nil
}

// handover is how long the spool may still be somebody else's, though the node is ours. Who
// ends lets go of the spool first; but of one that was killed the kernel closes one file
// after the other, and detaches BPF programs meanwhile.
const handover = 3 * time.Second

// openSpool opens the spool, if there is to be one. One that cannot be opened is done
// without: a trace less is better than none.
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
		log.Warn("the spool ended in an operation that was not written as a whole: it was cut off", "bytes", found.Cut)
	}
	if found.CursorLost {
		log.Warn("the spool does not say what was exported: all that is in it will be sent again", "bytes", found.Waiting)
	}
	log.Info("operations wait in the spool", "dir", o.Dir, "waiting_bytes", found.Waiting)
	return s
}

// set changes the destinations to what the options say. What waits goes to the new
// ones. An error leaves the old ones in place.
func (d *destinations) set(o config.Export) error {
	if !reflect.DeepEqual(o.OTLP, d.now.OTLP) {
		otlp, err := otlpExporter(o.OTLP)
		if err != nil {
			return err
		}
		d.otlp.SetExporter(otlp)
	}
	if o.File != d.now.File {
		var file export.Exporter
		if o.File.Path != "" {
			file = export.NewFile(o.File.Path, o.File.MaxBytes)
		}
		d.file.SetExporter(file)
	}
	d.now = o
	return nil
}

// otlpExporter makes the exporter for the options; nil if there is no endpoint.
func otlpExporter(o config.OTLP) (export.Exporter, error) {
	endpoint, _ := o.Target()
	if endpoint == "" {
		return nil, nil
	}
	tls, err := o.TLS()
	if err != nil {
		return nil, err
	}
	return export.NewOTLP(context.Background(), export.OTLPOptions{
		Endpoint: endpoint, TLS: tls, Headers: reveal(o.Headers),
		Gzip: o.Compression == "gzip", Timeout: o.Timeout,
	})
}

// reveal returns headers as they are sent.
func reveal(secrets map[string]config.Secret) map[string]string {
	headers := map[string]string{}
	for name, value := range secrets {
		headers[name] = value.Reveal()
	}
	return headers
}

// readings are what the destinations count.
func (d *destinations) readings() []meter.Reading {
	now := time.Now()
	return append(d.otlp.Stats().Readings(now), d.file.Stats().Readings(now)...)
}

func (d *destinations) send(spans *tracepb.ResourceSpans) {
	one := []*tracepb.ResourceSpans{spans}
	d.otlp.Enqueue(one)
	d.file.Enqueue(one)
}

// close sends what waits until ctx is done, and says what did not arrive.
func (d *destinations) close(ctx context.Context) {
	var closing sync.WaitGroup
	for _, q := range []*export.Queue{d.otlp, d.file} {
		closing.Go(func() {
			undelivered, err := q.Close(ctx)
			if undelivered > 0 || err != nil {
				d.log.Warn("operations were not delivered", "destination", q.Name, "operations", undelivered, "error", err)
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
