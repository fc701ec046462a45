//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

// A booting node sets up all pods concurrently, which is the worst case.
const (
	scaleSpans = 60               // programs of a pod's setup: bridge, portmap and commands
	scaleTakes = 10 * time.Second // a setup among hundreds
	scaleNodes = 5000
)

// measureScale runs the pure part with the events of large nodes, without a clock.
func measureScale(context.Context, settings) (rows []row, err error) {
	for _, pods := range []int{250, 500} {
		more, err := scale(pods)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func scale(pods int) ([]row, error) {
	events := boot(pods)
	o := config.Default().Limits
	p := pipeline.New(timeline.Options{
		Settle: o.Settle, MaxHold: o.MaxHold, Processes: o.Processes, Operations: o.Operations, Images: 4096, Facts: 2048,
	}, judge.Options{Sampling: judge.Sampling{Ratio: 1}}, trace.NewBuilder(trace.IDs{Seed: "boot"}, trace.Node{Name: "node"}.Resource(), "bench"))
	resting := heap()
	var most, highest, bytes, operations int
	began := time.Now()
	for i, e := range events {
		for _, r := range p.Apply(e) {
			if _, over := r.(*pipeline.Judged); over {
				operations++
				bytes += proto.Size(r.Drawn().Spans)
			}
		}
		most = max(most, p.Open())
		if i == len(events)-3*pods-1 { // before the plugins end
			highest = heap() - resting
		}
	}
	took := time.Since(began)
	if operations != pods || p.Open() != 0 {
		return nil, fmt.Errorf("of %d pods %d came out, %d are still open", pods, operations, p.Open())
	}
	name := func(figure string) string { return fmt.Sprintf("%s, a node of %d pods boots", figure, pods) }
	perSecond := float64(len(events)) / scaleTakes.Seconds()
	return []row{
		{figure: name("events"), value: perSecond, unit: "/s", note: fmt.Sprintf("%d in %s: %d a pod", len(events), scaleTakes, len(events)/pods)},
		{figure: name("operations open"), value: float64(most), unit: "", note: fmt.Sprintf("of %d that limits.operations allows", o.Operations)},
		{figure: name("memory of timeline and judge"), value: float64(highest) / (1 << 20), unit: "MiB", note: "live heap while all are open"},
		{figure: name("time of timeline, judge and trace"), value: 100 * took.Seconds() / scaleTakes.Seconds(), unit: "%", note: "of one CPU, for as long as it lasts; all kept"},
		{figure: name("export"), value: float64(bytes) / (1 << 20), unit: "MiB", note: fmt.Sprintf("of OTLP, %d KiB a pod, before gzip", bytes/pods>>10)},
		{
			figure: name(fmt.Sprintf("export of %d nodes that turn over once a day", scaleNodes)),
			value:  float64(bytes) * scaleNodes / 86400 / (1 << 20), unit: "MiB/s",
			note: fmt.Sprintf("%.0f setups a second, everything kept, before gzip; a tenth of it with sampling.ratio = 0.1", float64(pods)*scaleNodes/86400),
		},
	}, nil
}

func boot(pods int) (events []event.Event) {
	for pod := range pods {
		one := setupOf(scaleSpans, fmt.Sprint("pod", pod))
		step := int64(scaleTakes) / int64(len(one))
		for i := range one {
			one[i].Time = int64(i)*step + int64(pod)
		}
		events = append(events, one...)
	}
	slices.SortStableFunc(events, func(a, b event.Event) int { return cmp.Compare(a.Time, b.Time) })
	settled := int64(scaleTakes + time.Minute)
	return append(events, event.Event{Time: settled, Body: &event.Tick{}})
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
