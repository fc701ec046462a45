//go:build linux

package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// quantile is the value that a share q (0 to 1) of the values does not exceed; 0 of
// none.
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

// resamples is how many bootstrap samples an interval is made of.
const resamples = 2000

// interval is the 95 % bootstrap interval of an estimate over n rounds: rounds, not
// single values, are drawn again, because those of one round are alike. It is the same
// whenever it is asked for.
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

// upTo are the numbers from 0 to below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
