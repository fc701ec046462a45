//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// arm is one way of watching pods, and how long each took to run, in milliseconds.
type arm struct {
	name string
	// start begins to watch; nil: nobody does.
	start func(context.Context) (stop func() error, err error)
	took  []float64
}

func (n *node) arms() []*arm {
	arms := []*arm{{name: "nothing attached"}}
	for _, detail := range details {
		arms = append(arms, &arm{name: "cniscope, detail " + detail, start: func(ctx context.Context) (func() error, error) {
			observer, err := n.observe(ctx, probeOptions(detail))
			if err != nil {
				return nil, err
			}
			return observer.Stop, nil
		}})
	}
	return append(arms,
		&arm{name: "bpftrace execsnoop", start: n.execsnoop},
		&arm{name: "strace -f of containerd", start: n.strace})
}

// measureCompare runs pods under one way of watching after the other: one pod of each in a
// round, in an order that is drawn anew.
func measureCompare(ctx context.Context, s settings) (rows []row, err error) {
	n, err := startNode(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	arms := n.arms()
	if err := n.many(ctx, 10, 1); err != nil { // warm
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	rounds := (s.compared + len(arms) - 1) / len(arms)
	for i := range rounds {
		for _, a := range random.Perm(len(arms)) {
			if err := n.once(ctx, arms[a]); err != nil {
				return nil, fmt.Errorf("%s: %w", arms[a].name, err)
			}
		}
		if (i+1)%10 == 0 {
			for _, a := range arms {
				say("round %d of %d: %s: %.1f ms", i+1, rounds, a.name, median(a.took))
			}
		}
	}
	for _, a := range arms {
		rows = append(rows, a.rows(arms[0])...)
	}
	return rows, nil
}

// once runs one pod.
func (n *node) once(ctx context.Context, a *arm) (err error) {
	stop := func() error { return nil }
	if a.start != nil {
		if stop, err = a.start(ctx); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := pause(ctx, settled); err != nil {
		return err
	}
	took, err := n.pod(ctx)
	a.took = append(a.took, milli(took))
	return err
}

// settled is when starting and stopping, and the pod before, have left nothing to do.
const settled = 500 * time.Millisecond

func (a *arm) rows(nothing *arm) []row {
	all := upTo(len(a.took))
	rows := []row{{
		figure: "RunPodSandbox, " + a.name + ", p50", value: median(a.took), unit: "ms",
		note: fmt.Sprintf("%d pods, p90 %.1f ms, min %.1f ms", len(all), quantile(a.took, 0.9), quantile(a.took, 0)),
	}}
	if a == nothing {
		return rows
	}
	ratio := func(rounds []int) float64 { return median(drawn(a.took, rounds)) / median(drawn(nothing.took, rounds)) }
	low, high := interval(len(all), ratio)
	return append(rows, row{
		figure: a.name + " / nothing attached", value: ratio(all), unit: "×",
		note: fmt.Sprintf("95 %% bootstrap interval over %d rounds: %.3f to %.3f", len(all), low, high),
	})
}

func drawn(values []float64, which []int) []float64 {
	some := make([]float64, len(which))
	for i, w := range which {
		some[i] = values[w]
	}
	return some
}
