package export

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// quick makes retries fast.
func quick(o queue.Options) queue.Options {
	o.Name, o.RetryFrom, o.RetryTo = "test", time.Millisecond, 20*time.Millisecond
	return o
}

func newQueue(t *testing.T, to queue.Sender, o queue.Options) *Queue {
	t.Helper()
	q := NewQueue(to, quick(o))
	t.Cleanup(func() {
		if t.Failed() {
			s := q.Stats()
			t.Logf("%+v, spool %+v", s, s.Spool)
		}
		_, _ = q.Close(done())
	})
	return q
}

func newOTLPQueue(t *testing.T, addr string, o queue.Options) *Queue {
	t.Helper()
	e, err := otlp.New(otlp.Options{Endpoint: addr, Timeout: patience})
	harness.Check(t, err)
	return newQueue(t, e, o)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func enqueue(t *testing.T, q *Queue, names ...string) {
	t.Helper()
	for _, n := range names {
		if !q.Enqueue(operation(n)) {
			t.Fatalf("%s was not taken: %+v", n, q.Stats())
		}
	}
}

// gate is an exporter whose exports wait for an answer.
type gate struct {
	arrived chan []string // span names of each export
	answer  chan error
	down    chan struct{}
}

func newGate() *gate {
	return &gate{make(chan []string), make(chan error), make(chan struct{})}
}

func (g *gate) Send(ctx context.Context, operations [][]byte) error {
	var all tracepb.TracesData
	if err := proto.Unmarshal(slices.Concat(operations...), &all); err != nil {
		return err
	}
	var names []string
	for _, rs := range all.ResourceSpans {
		names = append(names, rs.GetScopeSpans()[0].GetSpans()[0].GetName())
	}
	select {
	case g.arrived <- names:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-g.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) Shutdown(context.Context) error { close(g.down); return nil }

func TestEverythingArrivesOnceWhenADeadEndpointComesUp(t *testing.T) {
	addr := harness.Address(t)
	var log logText
	q := newOTLPQueue(t, addr, queue.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	want := operations(200)
	enqueue(t, q, want...)
	harness.Until(t, "some retries", func() bool { return q.Stats().Retries >= 5 })
	if s := q.Stats(); s.FailingSince.IsZero() || !strings.Contains(s.LastError, "refused") || s.Waiting != 200 || s.Sent != 0 {
		t.Errorf("%+v", s)
	}

	c := otlptest.Collect(t, addr, &otlptest.Collector{})
	harness.Until(t, "all arrived", func() bool { return q.Stats().Sent == 200 })
	if got := sorted(c); !slices.Equal(got, want) {
		t.Errorf("%d arrived: %q", len(got), got)
	}
	if c.Requests > 3 {
		t.Errorf("200 small operations took %d requests", c.Requests)
	}
	if s := q.Stats(); !s.FailingSince.IsZero() || s.Waiting != 0 || s.WaitingBytes != 0 || s.Lost() != 0 {
		t.Errorf("%+v", s)
	}
	n, err := q.Close(soon(t))
	if n != 0 || err != nil {
		t.Errorf("close: %d, %v", n, err)
	}
	text := log.String()
	if strings.Count(text, "the export fails") != 1 || strings.Count(text, "works again") != 1 || strings.Count(text, "\n") != 2 {
		t.Errorf("the log:\n%s", text)
	}
}

func TestAFullQueueDropsTheNewestAndSaysHowMany(t *testing.T) {
	var log logText
	addr := harness.Address(t)
	q := newOTLPQueue(t, addr, queue.Options{Items: 10, Log: slog.New(slog.NewTextHandler(&log, nil))})
	want := operations(10)
	enqueue(t, q, want...)
	harness.Until(t, "the endpoint is known to be bad", func() bool { return q.Stats().Retries >= 2 })
	for range 7 {
		if q.Enqueue(operation("too many")) {
			t.Fatal("taken")
		}
	}
	if s := q.Stats(); s.Dropped[queue.Full] != 7 || s.Waiting != 10 {
		t.Errorf("%+v", s)
	}
	c := otlptest.Collect(t, addr, &otlptest.Collector{})
	harness.Until(t, "all arrived", func() bool { return q.Stats().Sent == 10 })
	if got := sorted(c); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	harness.Until(t, "the log says so", func() bool { return strings.Contains(log.String(), "works again") })
	if !strings.Contains(log.String(), "dropped=7") {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestOperationsThatNoServerTakesDoNotWait(t *testing.T) {
	q := newQueue(t, newGate(), queue.Options{Bytes: 100 << 20})
	if q.Enqueue(operation(strings.Repeat("x", queue.MaxItem))) || q.Enqueue(operation("\xff")) {
		t.Error("taken")
	}
	if s := q.Stats(); s.Dropped[queue.TooLarge] != 1 || s.Dropped[queue.Invalid] != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOneBadOperationTakesNoOtherWithIt(t *testing.T) {
	g := newGate()
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{Answer: func(names []string) (*coltracepb.ExportTracePartialSuccess, error) {
		if slices.Contains(names, "operation 037") {
			return nil, status.Error(codes.InvalidArgument, "bad\x1b[31m span")
		}
		return nil, nil
	}})
	q := newQueue(t, g, queue.Options{})
	enqueue(t, q, "blocker")
	<-g.arrived
	all := operations(100)
	enqueue(t, q, all...)
	e, err := otlp.New(otlp.Options{Endpoint: c.Addr, Timeout: patience})
	harness.Check(t, err)
	q.SetSender(e)
	g.answer <- nil
	harness.Until(t, "all is settled", func() bool { s := q.Stats(); return s.Sent+s.Lost() == 101 })
	if got := sorted(c); !slices.Equal(got, slices.Delete(slices.Clone(all), 37, 38)) {
		t.Errorf("%q", got)
	}
	s := q.Stats()
	if s.Dropped[queue.Rejected] != 1 || s.Retries != 0 || !s.FailingSince.IsZero() {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(s.LastError, `bad\x1b[31m span`) {
		t.Errorf("foreign text as it came: %q", s.LastError)
	}
}

func TestAnotherExporterTakesOverWhatWaits(t *testing.T) {
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
	q := newOTLPQueue(t, harness.Address(t), queue.Options{})
	enqueue(t, q, operations(5)...)
	harness.Until(t, "a retry", func() bool { return q.Stats().Retries > 0 })
	e, err := otlp.New(otlp.Options{Endpoint: c.Addr, Timeout: patience})
	harness.Check(t, err)
	q.SetSender(e)
	harness.Until(t, "all arrived", func() bool { return q.Stats().Sent == 5 })
	if got := sorted(c); !slices.Equal(got, operations(5)) {
		t.Errorf("%q", got)
	}
}

func TestClose(t *testing.T) {
	t.Run("delivers what waits", func(t *testing.T) {
		c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
		q := newOTLPQueue(t, c.Addr, queue.Options{})
		enqueue(t, q, operations(50)...)
		if n, err := q.Close(soon(t)); n != 0 || err != nil || len(sorted(c)) != 50 {
			t.Errorf("%d undelivered, %v, %d arrived", n, err, len(sorted(c)))
		}
		if q.Enqueue(operation("late")) || q.Stats().Dropped[queue.Closed] != 1 {
			t.Errorf("%+v", q.Stats())
		}
		if n, err := q.Close(soon(t)); n != 0 || err != nil {
			t.Errorf("a second time: %d, %v", n, err)
		}
	})
	t.Run("says what a dead endpoint left behind", func(t *testing.T) {
		q := newOTLPQueue(t, harness.Address(t), queue.Options{})
		enqueue(t, q, operations(50)...)
		harness.Until(t, "a retry", func() bool { return q.Stats().Retries > 0 })
		if n, err := q.Close(done()); n != 50 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if s := q.Stats(); s.Dropped[queue.Closed] != 50 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// With concurrent use and a failing exporter, every lost operation is counted.
func TestEveryOperationIsAccountedFor(t *testing.T) {
	var turn int
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{Answer: func([]string) (*coltracepb.ExportTracePartialSuccess, error) {
		turn++ // one worker, one request at a time
		if turn%3 == 0 {
			return nil, status.Error(codes.Unavailable, "now and then")
		}
		return nil, nil
	}})
	q := newOTLPQueue(t, c.Addr, queue.Options{Items: 50})
	const each, all = 250, 4 * 250
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				q.Enqueue(operation(fmt.Sprintf("%d/%d", g, i)))
				_ = q.Stats()
			}
		})
	}
	wg.Wait()
	undelivered, err := q.Close(soon(t))
	s := q.Stats()
	if err != nil || undelivered != 0 || s.Sent+s.Lost() != all || uint64(len(sorted(c))) != s.Sent {
		t.Errorf("%v, %d undelivered, %d arrived, %+v", err, undelivered, len(sorted(c)), s)
	}
	if names := sorted(c); len(slices.Compact(names)) != int(s.Sent) {
		t.Error("some arrived twice")
	}
}

type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
