package pipeline

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

func TestTheFirstConnectionAfterTheSetupWasSent(t *testing.T) {
	const ms = int64(time.Millisecond)
	for name, test := range map[string]struct {
		ratio float64
		at    int64 // of the connection, in ms
		marks int
	}{
		"kept":                          {1, 9000, 1},
		"not kept":                      {0, 9000, 0},
		"too late":                      {1, 70_000, 0},
		"before it was sent, in a span": {1, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(
				timeline.Options{Settle: time.Second, MaxHold: time.Minute, Processes: 16, Operations: 4, Images: 32, Facts: 16},
				judge.Options{Sampling: judge.Sampling{Ratio: test.ratio}}, trace.NewBuilder(trace.IDs{}, nil, "test"))
			var over []*Judged
			var marks []Result
			at := func(at int64, body event.Body) {
				for _, r := range p.Apply(event.Event{Time: at * ms, Body: body}) {
					if judged, is := r.(*Judged); is {
						over = append(over, judged)
					} else {
						marks = append(marks, r)
					}
				}
			}
			pod := event.Namespace{Key: "pod"}
			connected := func() { at(test.at, &event.FirstConnection{NetNS: pod, Remote: "10.22.0.1:53"}) }
			at(0, &event.Exec{
				Process: "b", Parent: "cd", Root: true, InPath: true, File: "/opt/cni/bin/bridge", NetNS: event.Namespace{Key: "host"},
				Call: &event.Call{Command: "ADD", ContainerID: "c1", IfName: "eth0"},
			})
			at(1, &event.Enter{Process: "b", NetNS: pod})
			at(50, &event.Exit{Process: "b"})
			if test.at < 2000 {
				connected()
			}
			at(2000, &event.Tick{})
			if test.at > 2000 {
				connected()
			}
			if len(over) != 1 || len(marks) != test.marks {
				t.Fatalf("%d operations and %d marks", len(over), len(marks))
			}
			if test.marks == 0 {
				return
			}
			mark, call := marks[0].Drawn().Spans.ScopeSpans[0].Spans, over[0].IDs[over[0].Operation.Calls[0]]
			if len(mark) != 1 || string(mark[0].TraceId) != string(call[:]) {
				t.Errorf("the mark: %v", mark)
			}
			said := map[string]string{}
			for _, kv := range mark[0].Attributes {
				said[kv.Key] = kv.Value.GetStringValue()
			}
			if said["network.peer.address"] != "10.22.0.1:53" || said["cni.ifname"] != "eth0" || said["cni.command"] != "ADD" {
				t.Errorf("the mark says %v", said)
			}
		})
	}
}
