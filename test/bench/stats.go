//go:build linux

package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

func quantile[T cmp.Ordered](values []T, q float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

const resamples = 2000

// interval returns the 95 % bootstrap interval of an estimate over n rounds, deterministically.
func interval(n int, estimate func(rounds []int) float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 2))
	estimates := make([]float64, resamples)
	drawn := make([]int, n)
	for i := range estimates {
		for j := range drawn {
			drawn[j] = random.IntN(n)
		}
		estimates[i] = estimate(drawn)
	}
	return quantile(estimates, 0.025), quantile(estimates, 0.975)
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
