package metrics

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/cniconf"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/relay"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

// recording is a real run: a healthy pod, one with a slow command, one with a failing plugin.
const recording = "../../examples/recordings/three-pods.rec"

var (
	now        = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	thresholds = judge.Options{
		Thresholds: judge.Thresholds{Command: 250 * time.Millisecond, Call: 2 * time.Second},
		Sampling:   judge.Sampling{Ratio: 1, Keep: []judge.Reason{judge.Slow, judge.Failed, judge.Partial}},
	}
)

// busy is a node on which every metric has a value.
func busy() Snapshot {
	return Snapshot{
		Now: int64(100 * time.Second),
		InFlight: []model.Flight{
			{Command: "ADD", Start: int64(70 * time.Second)},
			{Command: "ADD", Start: int64(90 * time.Second)},
		},
		Timeline: timeline.Stats{Late: 3, Refused: 1, Orphaned: 2},
		Readings: slices.Concat(
			meter.ByReason("log_lines_lost_total",
				"Log lines that were not written: too many of one text, or a reader that does not keep up.",
				map[string]uint64{"limit": 3, "reader": 0}, nil),
			meter.ByReason("consumer_lost_total",
				"Events and results that a part of cniscope did not get: its queue was full, or it panicked.",
				map[string]uint64{"queue_full": 2, "panic": 0}, nil, "consumer", "history"),
			export.Readings(queue.Stats{
				Name: "otlp", Waiting: 7, WaitingBytes: 7000, Sent: 40, Retries: 5, RefusedSpans: 2, Dropped: map[queue.Reason]uint64{queue.Full: 4}, FailingSince: now.Add(-time.Minute),
				Spool: &spool.Stats{Bytes: 9000, Waiting: 5000}, Spooled: 46, Unspooled: 1,
			}, now),
			export.Readings(queue.Stats{Name: "file", Sent: 47}, now),
			probe.NewSource(probe.Options{}, nil).Stats().Readings,
			firstconn.New(firstconn.Node{}, 0, 0).Stats().Readings,
			probe.Stats{
				Tracked: 9, Way: "functions", Talked: 2 * time.Second,
				Lost: map[string]uint64{"environment too long": 1}, Programs: map[string]probe.ProgramStats{
					"exec": {Runs: 1000, Time: 2 * time.Millisecond}, "fork": {},
				},
			}.Readings(),
			relay.Counts{Received: 9, Told: 12, Malformed: 1, Refused: map[relay.Refusal]uint64{
				relay.Stranger:  8,
				relay.NoRuntime: 1,
			}, Stats: queue.Stats{
				Waiting: 2, WaitingBytes: 900, Sent: 6, Retries: 3, Dropped: map[queue.Reason]uint64{queue.Full: 1},
			}}.Readings(),
			nri.Counts{Sessions: 2, Received: 30, Handler: nri.Times{Max: 80 * time.Microsecond}}.Readings(),
		),
	}
}

func newTest(look func() Snapshot) *Metrics {
	return New(Options{
		Version: "v1.2.3", Look: look, Log: slog.New(slog.DiscardHandler),
		Sources: []source.Source{&nri.Plugin{}, &runtime.Source{}, &cniconf.Source{}, probe.NewSource(probe.Options{}, nil)},
	})
}

// replay counts a recording, judged by o.
func replay(t *testing.T, m *Metrics, o judge.Options) (results []*pipeline.Judged) {
	t.Helper()
	reader := harness.Must(record.Open(t.Context(), recording))(t)
	defer reader.Close()
	p := pipeline.New(
		timeline.Options{
			Settle: 500 * time.Millisecond, MaxHold: time.Minute, Processes: 8192, Operations: 1024,
			Images: 2000, Facts: 1000,
		},
		o, trace.NewBuilder(trace.IDs{Seed: reader.Header().BootID}, nil, "v1.2.3"))
	take := func(some []pipeline.Result) {
		for _, r := range some {
			m.Result(r)
			if over, is := r.(*pipeline.Judged); is {
				results = append(results, over)
			}
		}
	}
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			take(p.Flush())
			return results
		}
		harness.Check(t, err)
		m.Event(e)
		take(p.Apply(e))
	}
}

// scrape returns what Prometheus receives.
func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// lost, degraded and back are events of sources.
func lost(source, reason string, n uint64) event.Event {
	return event.Event{Body: &event.Lost{Source: source, Reason: reason, Count: n}}
}

func degraded(feature string, back bool) event.Event {
	return event.Event{Body: &event.Degraded{Feature: feature, Reason: "because", Restored: back}}
}

// pod is the setup of one pod: bridge with host-local and iptables, then portmap. Every second one is slow.
func pod(i int) *pipeline.Judged {
	image := func(name string, run bool) *model.Image {
		im := &model.Image{
			Program: model.Program{Name: name, File: "/x/" + name}, Exit: model.Exit{Ended: true},
			Start: 1000, End: 1000 + int64(1+i%2*1000)*int64(time.Millisecond),
		}
		if run {
			im.Run = &model.Run{Plugin: name, Command: "ADD"}
		}
		return im
	}
	bridge := image("bridge", true)
	bridge.Children = []*model.Image{image("host-local", true), image("iptables", false)}
	id := fmt.Sprint("sandbox-", i)
	op := &model.Operation{
		Kind: model.Setup, ContainerID: id, Start: 1000, End: bridge.End,
		Pod: event.Pod{Namespace: fmt.Sprint("ns-", i), Name: fmt.Sprint("pod-", i), UID: fmt.Sprint("uid-", i)},
		Calls: []*model.Call{{
			Command: "ADD", IfName: fmt.Sprint("eth", i), NetNS: "/run/netns/" + id, Network: fmt.Sprint("net-", i),
			Start: 1000, End: bridge.End, Runs: []*model.Image{bridge, image("portmap", true)},
		}},
	}
	j := thresholds.Judge(op)
	return &pipeline.Judged{Operation: op, Judgement: j, Trace: trace.NewBuilder(trace.IDs{}, nil, "").Build(op, j)}
}
