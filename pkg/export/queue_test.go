package export

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
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
	e := harness.Must(otlp.New(otlp.Options{Endpoint: addr, Timeout: patience}))(t)
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
		if !offer(q, n) {
			t.Fatalf("%s was not taken: %+v", n, q.Stats())
		}
	}
}

func TestOperationsThatNoServerTakesDoNotWait(t *testing.T) {
	q := newOTLPQueue(t, harness.Address(t), queue.Options{Bytes: 100 << 20})
	if offer(q, strings.Repeat("x", queue.MaxItem)) || offer(q, "\xff") {
		t.Error("taken")
	}
	if s := q.Stats(); s.Dropped[queue.TooLarge] != 1 || s.Dropped[queue.Invalid] != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a timeout that passing tests never reach.
const patience = 30 * time.Second

func operation(name string) []*tracepb.ResourceSpans {
	id := make([]byte, 16)
	binary.BigEndian.PutUint64(id[8:], uint64(len(name))+1)
	return []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{
			Key: "service.name", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "cniscope"}},
		}}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
			TraceId: id, SpanId: id[8:], Name: name,
			StartTimeUnixNano: 1_700_000_000_123_456_789, EndTimeUnixNano: 1_700_000_001_000_000_001,
		}}}},
	}}
}

func offer(q *Queue, name string) bool {
	spans := operation(name)
	return q.Enqueue(spans[0], func() ([]byte, error) { return proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) })
}

func operations(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("operation %03d", i)
	}
	return names
}

func sorted(c *otlptest.Collector) []string { return slices.Sorted(slices.Values(c.Got())) }
