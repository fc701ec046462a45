package main

import (
	"context"
	"log/slog"
	"reflect"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/export"
)

// destinations are where finished operations go: to a backend, to a file, to both, or,
// while nothing is set, nowhere.
type destinations struct {
	log        *slog.Logger
	otlp, file *export.Queue
	now        config.Export
}

func newDestinations(log *slog.Logger, o config.Export) (*destinations, error) {
	d := &destinations{
		log:  log,
		otlp: export.NewQueue(nil, export.QueueOptions{Name: "otlp", Operations: o.Queue, Log: log}),
		file: export.NewQueue(nil, export.QueueOptions{Name: "file", Operations: o.Queue, Log: log}),
	}
	if err := d.set(o); err != nil {
		d.close(context.Background())
		return nil, err
	}
	return d, nil
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
	headers := map[string]string{}
	for name, value := range o.Headers {
		headers[name] = value.Reveal()
	}
	return export.NewOTLP(context.Background(), export.OTLPOptions{
		Endpoint: endpoint, TLS: tls, Headers: headers,
		Gzip: o.Compression == "gzip", Timeout: o.Timeout,
	})
}

func (d *destinations) send(spans *tracepb.ResourceSpans) {
	one := []*tracepb.ResourceSpans{spans}
	d.otlp.Enqueue(one)
	d.file.Enqueue(one)
}

// close sends what waits until ctx is done, and says what did not arrive.
func (d *destinations) close(ctx context.Context) {
	for _, q := range []*export.Queue{d.otlp, d.file} {
		undelivered, err := q.Close(ctx)
		if undelivered > 0 || err != nil {
			d.log.Warn("operations were not delivered", "destination", q.Name, "operations", undelivered, "error", err)
		}
	}
}
