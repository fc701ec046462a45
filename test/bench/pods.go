//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/cniscope/cniscope/test/scope"
)

// measurePods runs pods beside an empty NRI plugin, four at once (saturates two CPUs), then singly.
func measurePods(ctx context.Context, s settings) ([]row, error) {
	rows, err := podsAtOnce(ctx, s, 4)
	if err != nil {
		return nil, err
	}
	more, err := podsAtOnce(ctx, s, 1)
	return append(rows, more...), err
}

func podsAtOnce(ctx context.Context, s settings, parallel int) (rows []row, err error) {
	stats, err := countRuns()
	if err != nil {
		return nil, err
	}
	defer stats.Close()
	n, err := startObserved(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	for _, index := range []string{before, behind} {
		empty, err := startEmpty(ctx, n.rig, index)
		if err != nil {
			return nil, err
		}
		defer empty.stop()
	}

	cpu, err := stats.used(n.observer.PID())
	if err != nil {
		return nil, err
	}
	peak := watchMemory(n.observer.PID())
	began := time.Now()
	if err := n.many(ctx, s.pods, parallel); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if err := pause(ctx, handedOver); err != nil {
		return nil, err
	}
	highest := peak()
	m, err := memoryOf(n.observer.PID())
	if err != nil {
		return nil, err
	}
	now, err := stats.used(n.observer.PID())
	if err != nil {
		return nil, err
	}
	latency, err := pluginLatency(ctx, n.rig.MetricsURL())
	if err != nil {
		return nil, err
	}
	if err := n.observer.Stop(); err != nil {
		return nil, err
	}
	handler, err := handlerTimes(n.observer)
	if err != nil {
		return nil, err
	}
	each := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) / float64(s.pods) }
	budget := 100.0
	if parallel > 1 { // includes waits for a CPU
		budget = 0
	}
	name := func(figure string) string { return fmt.Sprintf("%s, %d at once", figure, parallel) }
	rows = []row{
		{
			figure: name(fmt.Sprintf("RSS after %d pods", s.pods)), value: mib(m.all()), unit: "MiB", budget: rssBudget,
			note: fmt.Sprintf("highest %.1f MiB; %s; %d spans arrived", mib(highest), m, n.sink.spans.Load()),
		},
		{figure: name("CPU of cniscope, a pod"), value: each(now.self - cpu.self), unit: "ms", note: fmt.Sprintf("set up and torn down; all of them in %s", took.Round(time.Second))},
		{figure: name("CPU of the hooks, a pod"), value: each(now.hooks.since(cpu.hooks).sum()), unit: "ms", note: "for all programs of the machine, during the pods"},
		{
			figure: name("own time of the NRI handler, p99"), value: micro(handler.p99), unit: "µs", budget: budget,
			note: fmt.Sprintf("p50 %s, longest %s, %s calls; the true values are up to 20 %% less", handler.p50, handler.max, handler.calls),
		},
	}
	for _, r := range latency {
		r.figure = name(r.figure)
		rows = append(rows, r)
	}
	return rows, nil
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

type usage struct {
	self  time.Duration
	hooks ran
}

func (s *statistics) used(pid int) (u usage, err error) {
	if u.self, err = cpuTime(pid); err != nil {
		return u, err
	}
	u.hooks, err = s.programs(pid)
	return u, err
}

// watchMemory records a process's maximum memory until the returned function is called.
func watchMemory(pid int) (highest func() int) {
	stop, most := make(chan struct{}), 0
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			if m, err := memoryOf(pid); err == nil {
				most = max(most, m.all())
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() int {
		close(stop)
		watch.Wait()
		return most
	}
}

type handled struct {
	calls         string
	p50, p99, max time.Duration
}

var handlerLine = regexp.MustCompile(`NRI: handler durations" calls=(\d+) p50=(\S+) p99=(\S+) max=(\S+)`)

func handlerTimes(s *scope.Scope) (h handled, err error) {
	found := handlerLine.FindStringSubmatch(s.LogText())
	if found == nil {
		return h, fmt.Errorf("cniscope did not say how long its NRI handlers took; its log:\n%s", s.LogText())
	}
	h.calls = found[1]
	for i, d := range []*time.Duration{&h.p50, &h.p99, &h.max} {
		if *d, err = time.ParseDuration(found[i+2]); err != nil {
			return h, err
		}
	}
	return h, nil
}
