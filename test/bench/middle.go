//go:build linux

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

func measureMiddle(context.Context, settings) ([]row, error) {
	drop := judge.Options{
		Thresholds: judge.Thresholds{Command: 250 * time.Millisecond, Call: 2 * time.Second},
		Sampling:   judge.Sampling{Keep: []judge.Reason{judge.Slow, judge.Failed, judge.Partial}},
	}
	keep := drop
	keep.Ratio = 1
	ordinary, long := setup(60), setup(2000)
	op, large := operation(ordinary), operation(long)
	builder := trace.NewBuilder(trace.IDs{Seed: "boot"}, trace.Node{Name: "node"}.Resource(), "bench")
	verdict := keep.Judge(op)
	if drop.Judge(op).Keep || !verdict.Keep {
		return nil, fmt.Errorf("an ordinary operation is kept by a ratio of 0, or not by one of 1")
	}
	return []row{
		{
			figure: "timeline, one event", value: best(func() { operation(ordinary) }) / float64(len(ordinary)), unit: "µs",
			note: fmt.Sprintf("of %d, from the first to the closing of the operation", len(ordinary)),
		},
		{figure: "judge, 60 spans, not kept", value: best(func() { drop.Judge(op) }), unit: "µs", budget: 20},
		{figure: "judge, 2,000 spans", value: best(func() { keep.Judge(large) }), unit: "µs", budget: 1000},
		{figure: "trace, 60 spans", value: best(func() { builder.Build(op, verdict) }), unit: "µs"},
	}, nil
}

// best returns the fastest round in µs, since only a busy machine makes pure code slower.
func best(f func()) float64 {
	fastest := 0.0
	for range 5 {
		r := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				f()
			}
		})
		if us := float64(r.T.Nanoseconds()) / float64(r.N) / 1e3; fastest == 0 || us < fastest {
			fastest = us
		}
	}
	return fastest
}

// setup returns the events of a pod setup with a number of spans: a call, its plugin, and commands.
func setup(spans int) []event.Event {
	return append(setupOf(spans, "c1"), event.Event{Time: int64(3 * spans * int(time.Microsecond)), Body: &event.Tick{}})
}

// setupOf is setup for a sandbox id, without the final tick.
func setupOf(spans int, id string) (events []event.Event) {
	plugin := event.Process("b" + id)
	at := func(body event.Body) {
		events = append(events, event.Event{Time: int64(len(events)) * int64(time.Microsecond), Body: body})
	}
	call := &event.Call{Command: "ADD", ContainerID: id, IfName: "eth0", NetNS: "/run/netns/" + id}
	at(&event.Exec{Process: plugin, Parent: "cd", Root: true, InPath: true, File: "/opt/cni/bin/bridge", Name: "bridge", Stdin: "pipe", Call: call})
	for i := range spans - 2 {
		p := event.Process(fmt.Sprint("i", i, id))
		at(&event.Fork{Process: p, Parent: plugin})
		at(&event.Exec{Process: p, Parent: plugin, File: "/usr/sbin/xtables-nft-multi", Name: "iptables", Args: []string{"-t", "nat", "-S"}})
		at(&event.Exit{Process: p})
	}
	at(&event.Exit{Process: plugin})
	at(&event.Sandbox{Phase: event.SandboxRunning, ID: id})
	return events
}

func operation(events []event.Event) *model.Operation {
	line := timeline.New(timeline.Options{
		Settle: time.Second, MaxHold: time.Minute, Processes: 8192, Operations: 8, Images: 4096, Facts: 4096 / 2,
	})
	var ops []*model.Operation
	for _, e := range events {
		ops = append(ops, line.Apply(e)...)
	}
	return ops[0]
}
