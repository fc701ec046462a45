package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// patience is when a test gives up; none waits that long when it passes.
const patience = 30 * time.Second

// relaying is a relay that runs, and what it told.
type relaying struct {
	*Relay
	addr string

	mu     sync.Mutex
	events []event.Body
}

// start runs a relay until the end of the test.
func start(t *testing.T, o Options, upstream *otlp.Options) *relaying {
	t.Helper()
	if o.Listen == "" {
		o.Listen = harness.Address(t)
	}
	if o.Runtime == nil {
		o.Runtime = func() []int { return []int{os.Getpid()} }
	}
	o.RetryFrom, o.RetryTo = 5*time.Millisecond, 20*time.Millisecond
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := New(o)
	harness.Check(t, err)
	harness.Check(t, r.SetUpstream(upstream))
	running := &relaying{Relay: r, addr: o.Listen}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, func(e event.Event) {
			running.mu.Lock()
			defer running.mu.Unlock()
			running.events = append(running.events, e.Body)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		now, cancel := context.WithCancel(context.Background())
		cancel()
		r.Close(now)
	})
	harness.Until(t, "the relay listens", func() bool {
		c, err := net.Dial("tcp", o.Listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return running
}

// told returns what was learned of sandboxes: the names of the spans.
func (r *relaying) told() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.events {
		if above, ok := body.(*event.Above); ok {
			names = append(names, above.Name)
		}
	}
	return names
}

// post sends a request as OTLP over HTTP and returns the status of the answer.
func post(t *testing.T, addr string, body []byte, header ...string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/traces", bytes.NewReader(body))
	harness.Check(t, err)
	request.Header.Set("Content-Type", "application/x-protobuf")
	for _, h := range header {
		name, value, _ := bytes.Cut([]byte(h), []byte(": "))
		request.Header.Set(string(name), string(value))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	harness.Check(t, err)
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// to is an upstream that speaks gRPC.
func to(addr string) *otlp.Options { return &otlp.Options{Endpoint: addr, Timeout: patience} }

// refusing is a collector that may say no, by the names of the spans.
func refusing(refuse func(names string) error) *otlptest.Collector {
	return &otlptest.Collector{Answer: func(names []string) (*coltracepb.ExportTracePartialSuccess, error) {
		return nil, refuse(fmt.Sprint(names))
	}}
}
