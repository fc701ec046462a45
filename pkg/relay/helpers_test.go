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

const patience = 30 * time.Second

// relaying is a running relay with its events.
type relaying struct {
	*Relay
	addr string

	mu     sync.Mutex
	events []event.Body
}

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
	r := harness.Must(New(o))(t)
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

// post sends a request over OTLP/HTTP and returns the status.
func post(t *testing.T, addr string, body []byte, header ...string) int {
	t.Helper()
	request := harness.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/traces",
		bytes.NewReader(body)))(t)
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

// accepted posts a request that must be accepted.
func accepted(t *testing.T, addr string, body []byte, header ...string) {
	t.Helper()
	if code := post(t, addr, body, header...); code != http.StatusOK {
		t.Fatalf("answered %d", code)
	}
}

func to(addr string) *otlp.Options { return &otlp.Options{Endpoint: addr, Timeout: patience} }

func refusing(refuse func(names string) error) *otlptest.Collector {
	return &otlptest.Collector{Answer: func(names []string) (*coltracepb.ExportTracePartialSuccess, error) {
		return nil, refuse(fmt.Sprint(names))
	}}
}
