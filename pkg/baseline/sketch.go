package baseline

import (
	"math"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

const (
	// accuracy is how exact a quantile is, relative to itself.
	accuracy = 0.01
	// maxBins is how many bins a sketch has. With this accuracy they reach from any time down to a 3000th of it;
	// what is shorter is counted with the shortest of these.
	maxBins = 400
	// longest is the longest time that is told from a longer one.
	longest = 24 * time.Hour
)

// sketch is a distribution of times: how many lie in each bin of a logarithmic scale. The zero value is empty.
type sketch struct {
	bins  *store.CollapsingLowestDenseStore // nil while empty
	calls int
}

// scale maps times to bins. The error of the constructor is for accuracies that are none.
func scale() *mapping.LogarithmicMapping {
	m, _ := mapping.NewLogarithmicMapping(accuracy)
	return m
}

// binOf returns the bin of a time, which counts as one microsecond at least.
func binOf(d time.Duration) int {
	return scale().Index(float64(min(max(d, time.Microsecond), longest)))
}

// timeOf is the time that stands for a bin, which of the last one is its beginning.
func timeOf(bin int) time.Duration {
	return min(time.Duration(math.Round(scale().Value(bin))), longest)
}

func (s *sketch) add(d time.Duration) { s.put(binOf(d), 1) }

func (s *sketch) put(bin, calls int) {
	if s.bins == nil {
		s.bins = store.NewCollapsingLowestDenseStore(maxBins)
	}
	s.bins.AddWithCount(bin, float64(calls))
	s.calls += calls
}

// bin is that of a quantile. The sketch must not be empty.
func (s *sketch) bin(quantile float64) int {
	return s.bins.KeyAtRank(math.Ceil(float64(quantile * float64(s.calls-1))))
}

// above reports whether a time lies in a bin above that of a quantile. The sketch must not be empty.
func (s *sketch) above(d time.Duration, quantile float64) bool { return binOf(d) > s.bin(quantile) }

func (s *sketch) level() Level {
	if s.calls == 0 {
		return Level{}
	}
	return Level{Median: timeOf(s.bin(0.5)), P99: timeOf(s.bin(percentile)), Calls: s.calls}
}

func (s *sketch) copy() (c sketch) {
	s.each(func(bin, calls int) { c.put(bin, calls) })
	return c
}

// each calls f for each bin that is not empty, in order.
func (s *sketch) each(f func(bin, calls int)) {
	if s.bins == nil {
		return
	}
	s.bins.ForEach(func(bin int, calls float64) bool {
		f(bin, int(calls))
		return false
	})
}

// halve leaves every second call in the order of their times, so that quantiles stay where they are.
func (s *sketch) halve() {
	var half sketch
	before := 0
	s.each(func(bin, calls int) {
		if n := (before+calls)/2 - before/2; n > 0 {
			half.put(bin, n)
		}
		before += calls
	})
	*s = half
}
