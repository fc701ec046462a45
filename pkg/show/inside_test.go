package show

import (
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

// Waits inside a plugin are drawn below it, with the holder.
func TestTheInsideOfAPlugin(t *testing.T) {
	const ms = int64(time.Millisecond)
	p := pipeline.New(
		timeline.Options{
			Settle: time.Second, MaxHold: time.Minute, MinSpan: time.Millisecond, Processes: 64, Operations: 8,
			Images: 100, Facts: 50,
		},
		judge.Options{Sampling: judge.Sampling{Ratio: 1}}, trace.NewBuilder(trace.IDs{}, nil, "test"))
	call := &event.Call{
		Command: "ADD", ContainerID: "c1", IfName: "eth0",
		Pod: event.Pod{Namespace: "shop", Name: "web-0"},
	}
	host := event.Namespace{Key: "host"}
	link := func(name string, start, end int64) event.Event {
		return event.Event{
			Time: end * ms,
			Body: &event.Request{
				Process: "b", Start: start * ms, Protocol: "rtnetlink", Name: "RTM_NEWLINK", NetNS: host,
				Interface: event.Interface{Name: name},
			},
		}
	}
	lock := func(kind event.WaitKind, start, end int64, path, name string, holder *event.Actor) event.Event {
		return event.Event{
			Time: end * ms,
			Body: &event.Wait{Process: "b", Start: start * ms, Kind: kind, Path: path, Name: name, Holder: holder},
		}
	}
	events := []event.Event{
		{Time: 0, Body: &event.Exec{
			Process: "b", Parent: "cd", Root: true, InPath: true, File: "/opt/cni/bin/bridge",
			Name: "bridge", Call: call, NetNS: host,
		}},
		lock(event.WaitLock, 1, 40, "/run/cni.lock", "flock", &event.Actor{PID: 812, Name: "other"}),
		lock(event.WaitMutex, 40, 42, "", "rtnl", nil), lock(event.WaitMutex, 43, 45, "", "rtnl", nil), lock(event.WaitMutex,
			46, 48, "", "rtnl", nil),
		link("eth0", 50, 50), link("eth0", 51, 59), link("cni0", 60, 60),
		{Time: 61 * ms, Body: &event.Connect{
			Process: "b", Start: 61 * ms, Socket: "s", Network: "unix",
			Address: "/run/agent.sock",
		}},
		{Time: 61 * ms, Body: &event.Accept{Socket: "s", Agent: event.Actor{PID: 44, Name: "agentd"}}},
		{Time: 80 * ms, Body: &event.Close{Process: "b", Socket: "s"}},
		{Time: 81 * ms, Body: &event.Result{Process: "b", Code: 11, Message: "no address"}},
		{Time: 100 * ms, Body: &event.Exit{Process: "b", Code: 1}},
	}
	for _, e := range events {
		p.Apply(e)
	}
	var b strings.Builder
	harness.Check(t, Waterfalls(&b, slices.Values([]*tracepb.ResourceSpans{p.Flush()[0].Drawn().Spans}),
		Options{Width: 100}))
	_, rows, _ := strings.Cut(b.String(), "100ms\n")
	want := `✗ bridge ADD                  │██████████████████████████████████████│     100ms  exit 1
    wait for lock             │▐██████████████                       │      39ms  /run/cni.lock  held by other (pid 812) for 39ms at least
    wait for lock ×3          │               █▐▐                    │       8ms  rtnl  6ms in all
    configure interface       │                   ███▌               │       9ms  eth0  2 changes
      netlink RTM_NEWLINK     │                   ▐██▌               │       8ms  eth0
    configure interface       │                      ▏               │        0s  cni0  1 change
    call agent                │                       ███████▌       │      19ms  agentd /run/agent.sock
`
	harness.Equal(t, strings.TrimSpace(rows), strings.TrimSpace(want), b.String())
	if head, _, _ := strings.Cut(b.String(), "\n"); !strings.Contains(head,
		`FAILED: bridge exited 1: code 11: "no address"`) {
		t.Errorf("headline: %s", head)
	}
}
