//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/test/scope"
)

// measureBeside runs pods observed by two cniscopes at once, of this source and BENCH_BASE, with equal load.
func measureBeside(ctx context.Context, n *node) (rows []row, err error) {
	sides := []*side{{name: "this", program: n.settings.program}, {name: "base", program: n.settings.base}}
	for _, d := range sides {
		if d.scope, err = scope.Start(ctx, n.rig, scope.Options{
			Program: d.program, State: filepath.Join(n.rig.Dir(), d.name), TOML: fmt.Sprintf("[export.otlp]\nendpoint = %q\n", n.sink.endpoint),
		}); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.scope.Stop()) }()
	}
	// Warm up with one pod.
	if _, err := n.pod(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, handedOver); err != nil {
		return nil, err
	}
	stats, err := countRuns()
	if err != nil {
		return nil, err
	}
	defer stats.Close()
	for _, d := range sides {
		if d.before, err = stats.spentBy(d.scope.PID()); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := n.many(ctx, n.settings.pods, n.settings.together); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if err := pause(ctx, handedOver); err != nil {
		return nil, err
	}
	for _, d := range sides {
		more, err := d.rows(stats, n.settings.pods, took)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// handedOver is the time until everything is settled and sent.
const handedOver = 5 * time.Second

type side struct {
	name, program string
	scope         *scope.Scope
	before        spent
}

// rows returns the usage since before.
func (d *side) rows(stats *statistics, pods int, took time.Duration) ([]row, error) {
	now, err := stats.spentBy(d.scope.PID())
	if err != nil {
		return nil, err
	}
	m, err := memoryOf(d.scope.PID())
	if err != nil {
		return nil, err
	}
	hooks := now.ran.since(d.before.ran)
	per := func(n float64) float64 { return n / float64(pods) }
	share := (now.user - d.before.user) / max(now.user+now.system-d.before.user-d.before.system, 1)
	return []row{
		{
			figure: d.name + ": CPU, a pod", value: per(milli(now.cpu - d.before.cpu)), unit: "ms",
			note: fmt.Sprintf("%.0f %% of it in the program, the rest in the kernel; %d pods in %s", 100*share, pods, took.Round(time.Second)),
		},
		{
			figure: d.name + ": BPF programs, a pod", value: per(milli(hooks.sum())), unit: "ms",
			note: fmt.Sprintf("without the %.0f ns that the statistics take in each run; of all pods %s", now.ran.empty(d.before.ran), hooks.said()),
		},
		{figure: d.name + ": its threads gave up the CPU, a pod", value: per(now.waits - d.before.waits), unit: "times"},
		{figure: d.name + ": RSS", value: mib(m.all()), unit: "MiB", note: m.String()},
	}, nil
}

// spent is a process's usage so far.
type spent struct {
	cpu          time.Duration
	user, system float64 // by kind, in clock ticks, approximate
	waits        float64
	ran          ran // of its BPF programs
}

func (s *statistics) spentBy(pid int) (u spent, err error) {
	if u.cpu, err = cpuTime(pid); err != nil {
		return u, err
	}
	if u.ran, err = s.programs(pid); err != nil {
		return u, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	const user, system = 11, 12 // proc(5), counted from the state
	if len(fields) <= system {
		return u, fmt.Errorf("/proc/%d/stat: %q", pid, stat)
	}
	u.user, _ = strconv.ParseFloat(fields[user], 64)
	u.system, _ = strconv.ParseFloat(fields[system], 64)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return u, err
	}
	for _, t := range threads {
		fields, err := status(t)
		if err != nil {
			continue // exited
		}
		n, _ := strconv.ParseFloat(fields["voluntary_ctxt_switches"], 64)
		u.waits += n
	}
	return u, nil
}
