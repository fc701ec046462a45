//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/cniscope/cniscope/test/scope"
)

type arm struct {
	name string
	// shows describes its output, in units of unit.
	shows, unit string
	// start starts observing; nil observes nothing.
	start func(context.Context) (watcher, error)

	took         [][]float64 // by turn and pod, ms
	cpu, hooks   []float64   // by turn, ms per pod
	peak         int         // KiB, maximum of all turns
	rest, after  loop        // an unrelated process's system call
	told, naming int         // units, and those with a pod's name
	seen         int         // number of pods for told
}

// watcher is a program that observes pods.
type watcher interface {
	PID() int
	// Told returns the amount of output so far, and the part with a name.
	Told(name *regexp.Regexp) (all, naming int, err error)
	// Stop interrupts it and waits for its cleanup.
	Stop() error
}

// exporting is a cniscope that exports to the node's backend.
type exporting struct {
	*scope.Scope
	sink   *sink
	before int64
}

// Told returns the received spans, all of which have a pod.
func (e *exporting) Told(*regexp.Regexp) (all, naming int, err error) {
	spans := int(e.sink.spans.Load() - e.before)
	return spans, spans, nil
}

// settled is the delay after starting and stopping.
const settled = 500 * time.Millisecond

// podName matches the names of node.pod.
var podName = regexp.MustCompile(`\bpod-[0-9]+\b`)

// turn has an arm observe pods, after one unmeasured pod that warms caches.
func (n *node) turn(ctx context.Context, a *arm, pods int) (err error) {
	var w watcher
	if a.start != nil {
		if w, err = a.start(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Stop()) }()
	}
	if err := pause(ctx, settled); err != nil {
		return err
	}
	a.rest.onThread()
	first := n.pods.Load()
	if _, err := n.pod(ctx); err != nil {
		return err
	}
	if w == nil {
		return n.timed(ctx, a, pods)
	}
	if err := n.charged(ctx, a, pods, w.PID()); err != nil {
		return err
	}
	if err := n.billed(ctx, a, w.PID()); err != nil {
		return err
	}
	told, naming, err := w.Told(podName)
	a.told, a.naming, a.seen = a.told+told, a.naming+naming, a.seen+int(n.pods.Load()-first)
	return err
}

// timed runs pods in sequence and measures an unrelated system call while tracing is still on.
func (n *node) timed(ctx context.Context, a *arm, pods int) error {
	took := make([]float64, pods)
	for i := range took {
		t, err := n.pod(ctx)
		if err != nil {
			return err
		}
		took[i] = milli(t)
	}
	a.took = append(a.took, took)
	a.after.onThread()
	return nil
}

// charged is timed with a process's CPU time and memory, until everything is sent.
func (n *node) charged(ctx context.Context, a *arm, pods, pid int) error {
	before, err := cpuTime(pid)
	if err != nil {
		return err
	}
	peak := watchMemory(pid)
	err = n.timed(ctx, a, pods)
	if err == nil {
		err = pause(ctx, 5*time.Second)
	}
	a.peak = max(a.peak, peak())
	if err != nil {
		return err
	}
	now, err := cpuTime(pid)
	a.cpu = append(a.cpu, milli(now-before)/float64(pods))
	return err
}

// billed measures the run time of a process's BPF programs with a separate pod, because the statistics cost time.
func (n *node) billed(ctx context.Context, a *arm, pid int) error {
	stats, err := countRuns()
	if err != nil {
		return err
	}
	defer stats.Close()
	pod, rest, err := n.hooksFor(ctx, stats, pid)
	if errors.Is(err, errNoPrograms) {
		return nil // no BPF programs
	}
	a.hooks = append(a.hooks, milli(pod.sum()-rest.sum()))
	return err
}

func (l *loop) onThread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.run()
}

func (a *arm) podRow() row {
	all := slices.Concat(a.took...)
	return row{
		figure: "RunPodSandbox, " + a.name + ", p50", value: median(all), unit: "ms",
		note: fmt.Sprintf("%d pods, p90 %.1f ms, p99 %.1f ms, min %.1f ms", len(all), quantile(all, 0.9), quantile(all, 0.99), quantile(all, 0)),
	}
}

func (a *arm) ratioRow(nothing *arm) row {
	ratio := func(rounds []int) float64 {
		return median(slices.Concat(drawn(a.took, rounds)...)) / median(slices.Concat(drawn(nothing.took, rounds)...))
	}
	rounds := upTo(len(a.took))
	low, high := interval(len(rounds), ratio)
	return row{
		figure: a.name + " / nothing", value: ratio(rounds), unit: "×",
		note: fmt.Sprintf("95 %% bootstrap interval over %d rounds of %d pods: %.3f to %.3f", len(rounds), len(a.took[0]), low, high),
	}
}

func (a *arm) cpuRow() row {
	return row{
		figure: "CPU a pod, " + a.name, value: median(a.cpu) + median(a.hooks), unit: "ms",
		note: fmt.Sprintf("the program %s, its BPF programs %s; medians of %d turns", short(median(a.cpu)), short(median(a.hooks)), len(a.cpu)),
	}
}

func (a *arm) memoryRow() row {
	return row{figure: "RSS, " + a.name, value: mib(a.peak), unit: "MiB", note: "the highest of all turns"}
}

func (a *arm) toldRow() row {
	each := func(n int) float64 { return float64(n) / float64(max(a.seen, 1)) }
	return row{
		figure: "told of a pod, " + a.name, value: each(a.told), unit: a.unit,
		note: fmt.Sprintf("%s with its name; %s", short(each(a.naming)), a.shows),
	}
}

func drawn[T any](values []T, which []int) []T {
	some := make([]T, len(which))
	for i, w := range which {
		some[i] = values[w]
	}
	return some
}
