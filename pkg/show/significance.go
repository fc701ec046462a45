package show

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// alpha is the chance that a comparison of two recordings of the same thing says that
// anything differs, benchstat's 5 %: not each of its many lines, but all of them together.
const alpha = 0.05

// test is one question to two samples: is one of them higher?
type test struct {
	// p is the chance that two samples of the same differ so much (Mann-Whitney: nothing is
	// assumed of how times are distributed).
	p float64
	// least is what p would be if the samples did not overlap at all: few values say little.
	least float64
	// differs is the answer, unclear that more values may change it.
	differs, unclear bool
}

// compare asks whether one sample is higher. Both must have values.
func compare(a, b []float64) *test {
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	}
	return &test{p: benchmath.AssumeNothing.Compare(sample(a), sample(b)).P, least: least(len(a), len(b))}
}

// least is 2 of all ways in which n and m values can be in order.
func least(n, m int) float64 {
	factorial := func(n int) float64 {
		log, _ := math.Lgamma(float64(n) + 1)
		return log
	}
	return min(1, 2*math.Exp(factorial(n)+factorial(m)-factorial(n+m)))
}

// decide answers all tests of a comparison together, after Holm (1979): who asks a hundred
// questions gets five wrong answers at 5 % each.
func decide(tests []*test) {
	slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Compare(a.p, b.p) })
	differs := true
	for i, t := range tests {
		share := alpha / float64(len(tests)-i)
		differs = differs && t.p <= share
		t.differs = differs
		t.unclear = !differs && t.least > share
	}
}

// median is the middle value, and half the width of its 95 % confidence interval in percent;
// infinite if there are too few values to tell, which are five and less.
func median(values []float64) (center, plusMinus float64) {
	if len(values) == 0 {
		return 0, math.Inf(1)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
	return s.Center, 100 * max(s.Hi-s.Center, s.Center-s.Lo) / max(s.Center, 1e-6)
}
