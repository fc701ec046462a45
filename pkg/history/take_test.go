package history

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

func callOf(ifname, plugin string) *model.Call {
	return &model.Call{
		Command: "ADD", IfName: ifname, Network: "net-" + ifname,
		Runs: []*model.Image{{Run: &model.Run{Plugin: plugin}}},
	}
}

// lineOf is the only line of an operation.
func lineOf(t *testing.T, calls []*model.Call, judged ...*judge.Call) control.Line {
	t.Helper()
	j := &judge.Judgement{Calls: map[*model.Call]*judge.Call{}}
	for i, call := range calls {
		j.Calls[call] = judged[i]
	}
	h := New("node-a", began)
	h.Take(&pipeline.Judged{Operation: &model.Operation{ContainerID: "c1", Pod: event.Pod{Namespace: "shop", Name: "web-0"}, Calls: calls}, Judgement: j})
	lines := all(t, h, control.Query{}).Operations
	harness.Equal(t, len(lines), 1, "lines")
	return lines[0]
}

// A line describes the most relevant call: failed, slow, with a slow part, or the longest.
func TestALineIsAboutTheCallThatTellsMost(t *testing.T) {
	for name, test := range map[string]struct {
		calls  [3]judge.Call // of lo, eth0 and net1
		ifname string
		result control.Result
	}{
		"ordinary":         {[3]judge.Call{{Took: 1}, {Took: 3}, {Took: 2}}, "eth0", control.Ordinary},
		"slow":             {[3]judge.Call{{Took: 1}, {Took: 3}, {Took: 2, Slow: 1}}, "net1", control.Slow},
		"failed":           {[3]judge.Call{{Took: 1, Failure: "no"}, {Took: 3, Slow: 1}, {Took: 2}}, "lo", control.Failed},
		"a slow command":   {[3]judge.Call{{Took: 1}, {Took: 3}, {Took: 2, SlowCommands: 1}}, "net1", control.Ordinary},
		"two that are not": {[3]judge.Call{{Took: 5, SlowLocks: 1}, {Took: 3, Slow: 1}, {Took: 9}}, "eth0", control.Slow},
	} {
		got := lineOf(t, []*model.Call{callOf("lo", "loopback"), callOf("eth0", "bridge"), callOf("net1", "macvlan")}, &test.calls[0], &test.calls[1], &test.calls[2])
		if got.IfName != test.ifname || got.Result != test.result || got.Pod != "web-0" || got.Network != "net-"+test.ifname {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Before: a failed call named the first plugin of its chain.
func TestALineNamesTheFailedPlugin(t *testing.T) {
	call := callOf("eth0", "bridge")
	call.Runs = append(call.Runs, &model.Image{Run: &model.Run{Plugin: "asker"}})
	c := &judge.Call{Took: 1, Failure: "no", Failed: call.Runs[1]}
	line := func() string { return lineOf(t, []*model.Call{call}, c).Plugin }
	harness.Equal(t, line(), "asker", "the failed plugin")
	c.Failed, call.NeverRun = nil, []string{"portmap"}
	harness.Equal(t, line(), "portmap", "the plugin that did not start")
	c.Failure, call.NeverRun = "", nil
	harness.Equal(t, line(), "bridge", "the main plugin")
}

// A call without a sandbox, such as STATUS, is not stored. A hung call has one line, and its end another.
func TestWhatIsTaken(t *testing.T) {
	h := New("node-a", began)
	h.Take(&pipeline.Judged{
		Operation: &model.Operation{Calls: []*model.Call{callOf("", "bridge")}},
		Judgement: &judge.Judgement{},
	})
	h.Take(&pipeline.Hung{At: 20e9, Flight: model.Flight{
		ContainerID: "c1", Command: "ADD", IfName: "eth0", Plugin: "bridge", Name: "iptables", PID: 7, Since: 5e9, Start: 0,
		Asks: "/run/a.sock", Agent: "agentd", Asked: 10e9, Polls: "/run/lock",
	}, Trace: trace.Trace{ID: oteltrace.TraceID{1}}})
	got := all(t, h, control.Query{}).Operations
	if len(got) != 1 || got[0].Result != control.Hung || got[0].Duration != 20*time.Second ||
		got[0].Verdict != "in progress for 20s, runs iptables (pid 7) for 15s, which asks agentd at /run/a.sock for 10s, polls for /run/lock" {
		t.Errorf("%+v", got)
	}
}

func noise(n int) *tracepb.ResourceSpans {
	value := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: random(n)}}
	return &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
		Name:       "CNI ADD",
		Attributes: []*commonpb.KeyValue{{Key: "noise", Value: value}},
	}}}}}
}

// The last slow and failed operations keep their spans, within the bounds.
func TestWholeOperationsAreBounded(t *testing.T) {
	for name, test := range map[string]struct{ operations, bytes, least int }{
		"many":  {3 * wholeOperations, 100, wholeOperations},
		"large": {200, 100_000, 20},
	} {
		before := heap()
		h := New("node-a", began)
		var kept *tracepb.ResourceSpans
		for i := range test.operations {
			kept = noise(test.bytes)
			h.Keep([]string{fmt.Sprint(i), fmt.Sprint("other ", i)}, trace.Of(kept))
		}
		took := heap() - before
		last := fmt.Sprint("other ", test.operations-1)
		var got tracepb.TracesData
		data, err := h.Whole(last)
		if err := errors.Join(err, proto.Unmarshal(data, &got)); err != nil || len(got.ResourceSpans) != 1 ||
			!proto.Equal(got.ResourceSpans[0], kept) {
			t.Errorf("%s: %v, %v", name, err, &got)
		}
		if n := len(h.whole.Held()); took > wholeBytes+(1<<20) || n < test.least || n > wholeOperations {
			t.Errorf("%s: %d operations in %d bytes", name, n, took)
		}
		if _, err := h.Whole("0"); !errors.Is(err, control.ErrNotRemembered) || !strings.Contains(err.Error(),
			"2026-01-02 03:04:05Z") {
			t.Errorf("%s: %v", name, err)
		}
		runtime.KeepAlive(h)
	}
	h := New("node-a", began)
	h.Keep([]string{"a"}, trace.Of(noise(largestWhole+1)))
	if _, err := h.Whole("a"); !errors.Is(err, control.ErrNotRemembered) || h.forgotten["large"] != 1 {
		t.Errorf("%v, %v", err, h.forgotten)
	}
}

// An unconfirmed wait of an agent is hidden from other namespaces.
func TestWhatIsPerhapsAnothersIsNotItsOwn(t *testing.T) {
	for lost, named := range map[time.Duration]bool{0: true, 5: false} {
		line := lineOf(t, []*model.Call{callOf("eth0", "bridge")}, &judge.Call{
			Took: 9, SlowLocks: 1, Slow: 1, Parts: []judge.Part{{Kind: judge.Locks, Name: "/var/lib/bank/lock", Time: 5, Candidate: lost}},
		})
		if !line.Foreign || !strings.Contains(line.Verdict, "/var/lib/bank/lock") ||
			strings.Contains(line.Own, "bank") != named {
			t.Errorf("%+v", line)
		}
	}
}
