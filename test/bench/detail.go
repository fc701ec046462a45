//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var details = []string{"commands", "auto", "always"}

// measureDetail measures the kernel time per pod in each detail mode, from the kernel's statistics.
func measureDetail(ctx context.Context, n *node) (rows []row, err error) {
	stats, err := countRuns()
	if err != nil {
		return nil, err
	}
	defer stats.Close()
	for _, detail := range details {
		r, err := n.kernelTime(ctx, stats, detail)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (n *node) kernelTime(ctx context.Context, stats *statistics, detail string) (_ row, err error) {
	observer, err := n.observe(ctx, probeOptions(detail))
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, observer.Stop()) }()
	var whole, net []time.Duration
	each := map[string][]time.Duration{}
	for i := range n.settings.detailed + 1 {
		pod, rest, err := n.hooksFor(ctx, stats, observer.PID())
		if err != nil {
			return row{}, err
		}
		if i == 0 { // warm up
			continue
		}
		whole, net = append(whole, pod.sum()), append(net, pod.sum()-rest.sum())
		for name, d := range pod.less(rest) {
			each[name] = append(each[name], d)
		}
	}
	typical := took{}
	for name, all := range each {
		typical[name] = median(all)
	}
	return row{
		figure: "BPF CPU a pod, detail " + detail, value: milli(median(net)), unit: "ms", budget: 10,
		note: fmt.Sprintf("set up and torn down, %d pods: p90 %s; with all else on the machine %s; without what the statistics take; by program %s",
			len(net), short(milli(quantile(net, 0.9))), short(milli(median(whole))), typical.said()),
	}, nil
}

// hooksFor returns the BPF programs' time during a pod, and during an equal time without one.
func (n *node) hooksFor(ctx context.Context, stats *statistics, pid int) (pod, rest took, err error) {
	during := func(f func() error) (took, error) {
		before, err := stats.programs(pid)
		if err == nil {
			err = f()
		}
		if err != nil {
			return nil, err
		}
		after, err := stats.programs(pid)
		return after.since(before), err
	}
	began := time.Now()
	pod, err = during(func() error { _, err := n.pod(ctx); return err })
	lasted := time.Since(began)
	if err != nil {
		return nil, nil, err
	}
	rest, err = during(func() error { return pause(ctx, lasted) })
	return pod, rest, err
}

func probeOptions(detail string) string { return fmt.Sprintf("[probe]\ndetail = %q\n", detail) }
