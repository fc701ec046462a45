//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cniscope/cniscope/test/port"
)

// JaegerOptions configure a Jaeger.
type JaegerOptions struct {
	// Tools is the directory of `make tools-jaeger`. Default: as for Options.
	Tools string
	// Log gets swept remains. Default: none.
	Log *slog.Logger
}

// Jaeger is a private Jaeger v2 with traces in memory, on loopback.
type Jaeger struct {
	place  *place
	daemon *daemon
	binary string
	client *http.Client

	otlp, otlpHTTP, query, queryGRPC string
	ports                            []*port.Port
}

// StartJaeger starts a Jaeger on free ports and returns once it accepts spans and queries. The caller closes it.
// Errors wrap ErrNoTools if it was not built.
func StartJaeger(ctx context.Context, opts JaegerOptions) (*Jaeger, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Tools == "" {
		tools, err := Tools("jaeger")
		if err != nil {
			return nil, err
		}
		opts.Tools = tools
	}
	place, err := claim(jaegerKind, nil, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("start Jaeger: %w", err)
	}
	j := &Jaeger{place: place, binary: filepath.Join(opts.Tools, "jaeger"), client: &http.Client{Timeout: time.Minute}}
	for _, address := range []*string{&j.otlp, &j.otlpHTTP, &j.query, &j.queryGRPC} {
		p, err := port.Reserve()
		if err != nil {
			return nil, errors.Join(err, j.Close())
		}
		*address, j.ports = p.Addr, append(j.ports, p)
	}
	config := strings.NewReplacer("{otlp}", j.otlp, "{otlp-http}", j.otlpHTTP, "{query}", j.query, "{query-grpc}", j.queryGRPC).Replace(jaegerConfig)
	if err := os.WriteFile(j.config(), []byte(config), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write Jaeger's configuration: %w", err), j.Close())
	}
	if err := j.Restart(ctx); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Restart starts a stopped Jaeger on the same ports, without its former data.
func (j *Jaeger) Restart(ctx context.Context) error {
	if j.daemon.running() {
		return errors.New("jaeger is running")
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.place.dir, marker + "=" + j.place.dir}
	var err error
	if j.daemon, err = startDaemon("jaeger", j.Log(), env, j.binary, "--config", j.config()); err != nil {
		return err
	}
	return j.daemon.await(ctx, 30*time.Second, func(ctx context.Context) error {
		c, err := net.DialTimeout("tcp", j.otlp, time.Second)
		if err != nil {
			return err
		}
		c.Close()
		_, err = j.Services(ctx)
		return err
	})
}

// Kill9 kills Jaeger.
func (j *Jaeger) Kill9() { j.daemon.kill9() }

// Close stops Jaeger and removes its files. It may be called again.
func (j *Jaeger) Close() error {
	if j.place == nil {
		return nil
	}
	j.daemon.kill9() // nothing to flush: it only has memory
	j.client.CloseIdleConnections()
	for _, p := range j.ports {
		p.Close()
	}
	err := j.place.release()
	j.place = nil
	return err
}

// OTLP is the gRPC endpoint for OTEL_EXPORTER_OTLP_ENDPOINT.
func (j *Jaeger) OTLP() string { return "http://" + j.otlp }

// OTLPHTTP is the endpoint for OTLP over HTTP.
func (j *Jaeger) OTLPHTTP() string { return "http://" + j.otlpHTTP }

// QueryURL is the base of its query API.
func (j *Jaeger) QueryURL() string { return "http://" + j.query }

// PID is Jaeger's process id.
func (j *Jaeger) PID() int { return j.daemon.cmd.Process.Pid }

// Log is the file of Jaeger's log.
func (j *Jaeger) Log() string { return filepath.Join(j.place.dir, "jaeger.log") }

func (j *Jaeger) config() string { return filepath.Join(j.place.dir, "jaeger.yaml") }

// jaegerConfig sets every address, because the defaults listen on all.
const jaegerConfig = `service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [jaeger_storage_exporter]
  telemetry:
    metrics:
      level: none
    logs:
      level: info

extensions:
  jaeger_storage:
    backends:
      memory:
        memory:
          max_traces: 100000
  jaeger_query:
    # Its own traces would go to port 4317, where a user's Jaeger may listen.
    enable_tracing: false
    storage:
      traces: memory
    http:
      endpoint: "{query}"
    grpc:
      endpoint: "{query-grpc}"

receivers:
  otlp:
    protocols:
      grpc:
        endpoint: "{otlp}"
        max_recv_msg_size_mib: 64
      http:
        endpoint: "{otlp-http}"

exporters:
  jaeger_storage_exporter:
    trace_storage: memory
`
