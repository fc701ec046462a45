//go:build linux

package soak

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // accept gzip
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/test/port"
)

// A collector receives OTLP from clients with the current certificate and stores the data needed to check calls.
type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	keys *keys
	port *port.Port
	file *os.File

	mu     sync.Mutex
	server *grpc.Server
	does   behaviour
	calls  []traced
}

type behaviour int

const (
	takes behaviour = iota
	isSlow
	refuses
	isSilent
)

// slowBy is a slow collector's delay, below export.otlp.timeout.
const slowBy = 3 * time.Second

// traced is the span of a call or an operation, in nanoseconds since 1970.
type traced struct {
	Operation                              bool `json:",omitempty"`
	Command, Container, Ifname, Pod, Trace string
	Start, End                             int64
	Failed                                 bool              `json:",omitempty"`
	Attrs                                  map[string]string `json:",omitempty"`
}

func newCollector(k *keys, file string) (*collector, error) {
	c := &collector{keys: k}
	var err error
	if c.port, err = port.Reserve(); err != nil {
		return nil, err
	}
	if c.file, err = os.Create(file); err != nil {
		return nil, err
	}
	return c, c.up()
}

func (c *collector) address() string { return "https://" + c.port.Addr }

func (c *collector) up() error {
	l, err := net.Listen("tcp", c.port.Addr)
	if err != nil {
		return fmt.Errorf("listen as a collector: %w", err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{c.keys.server}, ClientCAs: c.keys.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		VerifyConnection: func(s tls.ConnectionState) error { return c.keys.current(s.PeerCertificates) },
		MinVersion:       tls.VersionTLS12,
	})))
	coltracepb.RegisterTraceServiceServer(server, c)
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	go func() { _ = server.Serve(l) }() // until it is stopped
	return nil
}

func (c *collector) down() error {
	c.mu.Lock()
	server := c.server
	c.mu.Unlock()
	server.Stop()
	return nil
}

func (c *collector) close() error {
	_ = c.down()
	c.port.Close()
	return c.file.Close()
}

func (c *collector) behave(b behaviour) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.does = b
}

func (c *collector) Export(ctx context.Context, in *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	does := c.does
	c.mu.Unlock()
	switch does {
	case refuses:
		return nil, status.Error(codes.Unavailable, "refused by the soak's schedule")
	case isSilent:
		<-ctx.Done()
		return nil, ctx.Err()
	case isSlow:
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(slowBy):
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, c.take(in)
}

func (c *collector) take(in *coltracepb.ExportTraceServiceRequest) error {
	var found []traced
	for _, rs := range in.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				if t, is := essentials(rs.GetResource().GetAttributes(), s); is {
					found = append(found, t)
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range found {
		line, err := json.Marshal(t)
		if err == nil {
			_, err = c.file.Write(append(line, '\n'))
		}
		if err != nil {
			return fmt.Errorf("write down a span: %w", err)
		}
	}
	c.calls = append(c.calls, found...)
	return nil
}

// essentials returns a call's or operation's data; other spans are ignored.
func essentials(resource []*commonpb.KeyValue, s *tracepb.Span) (t traced, is bool) {
	attrs := map[string]string{}
	for _, kv := range slices.Concat(resource, s.GetAttributes()) {
		attrs[kv.GetKey()] = textOf(kv.GetValue())
	}
	if kind := attrs["cniscope.kind"]; kind != "call" && kind != "operation" {
		return t, false
	}
	t = traced{
		Operation: attrs["cniscope.kind"] == "operation",
		Command:   strings.TrimPrefix(s.GetName(), "CNI "), Container: attrs["sandbox.id"], Ifname: attrs["cni.ifname"], Pod: attrs["k8s.pod.name"],
		Trace: fmt.Sprintf("%x", s.GetTraceId()),
		Start: int64(s.GetStartTimeUnixNano()), End: int64(s.GetEndTimeUnixNano()),
		Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attrs: map[string]string{},
	}
	for _, key := range kept {
		if v, is := attrs[key]; is {
			t.Attrs[key] = v
		}
	}
	return t, true
}

var kept = []string{
	"cniscope.cause", "cniscope.verdict", "cniscope.partial_reason", "cniscope.sandbox_running", "cniscope.time.agent_ms", "cniscope.time.locks_ms",
	"cniscope.biggest_part", "cniscope.biggest_part_ms", "cniscope.unfinished", "cniscope.reduced", "k8s.pod.ip",
}

func textOf(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	}
	return ""
}

func (c *collector) got() []traced {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

func (c *collector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}

func (k *keys) current(chain []*x509.Certificate) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(chain) == 0 || chain[0].SerialNumber.Cmp(k.serial) != 0 {
		return errors.New("a certificate of before")
	}
	return nil
}
