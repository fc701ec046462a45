//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// podsARound run one after another before cniscope is started or stopped.
const podsARound = 10

// measureLatency runs pods with and without a cniscope, in turns.
func measureLatency(ctx context.Context, s settings) (rows []row, err error) {
	n, err := startNode(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if err := n.many(ctx, podsARound, 1); err != nil { // warm
		return nil, err
	}
	with, without := make([][]float64, s.rounds), make([][]float64, s.rounds)
	for i := range s.rounds {
		// ABBA: what drifts, drifts for both.
		if i%2 == 0 {
			without[i], err = n.round(ctx)
		}
		if err == nil {
			with[i], err = n.observed(ctx)
		}
		if err == nil && i%2 != 0 {
			without[i], err = n.round(ctx)
		}
		if err != nil {
			return nil, err
		}
		say("round %d of %d: RunPodSandbox %.1f ms with, %.1f ms without", i+1, s.rounds, median(with[i]), median(without[i]))
	}
	ratio := func(rounds []int) float64 { return median(pool(with, rounds)) / median(pool(without, rounds)) }
	all := upTo(s.rounds)
	low, high := interval(s.rounds, ratio)
	return []row{
		{figure: "RunPodSandbox without cniscope, p50", value: median(pool(without, all)), unit: "ms", note: fmt.Sprintf("%d pods, p95 %.1f ms", s.rounds*podsARound, quantile(pool(without, all), 0.95))},
		{figure: "RunPodSandbox with cniscope, p50", value: median(pool(with, all)), unit: "ms", note: fmt.Sprintf("%d pods, p95 %.1f ms", s.rounds*podsARound, quantile(pool(with, all), 0.95))},
		{figure: "with / without", value: ratio(all), unit: "×", note: fmt.Sprintf("95 %% bootstrap interval over %d rounds: %.3f to %.3f", s.rounds, low, high)},
	}, nil
}

// observed is a round with a cniscope.
func (n *node) observed(ctx context.Context) ([]float64, error) {
	observer, err := n.observe(ctx, "")
	if err != nil {
		return nil, err
	}
	took, err := n.round(ctx)
	return took, errors.Join(err, observer.Stop())
}

// round returns how long it took to run each of some pods, in milliseconds.
func (n *node) round(ctx context.Context) ([]float64, error) {
	if err := pause(ctx, time.Second); err != nil { // what starting and stopping left to do
		return nil, err
	}
	var took []float64
	for range podsARound {
		d, err := n.pod(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, float64(d)/float64(time.Millisecond))
	}
	return took, nil
}

func pool(rounds [][]float64, which []int) (all []float64) {
	for _, i := range which {
		all = slices.Concat(all, rounds[i])
	}
	return all
}
