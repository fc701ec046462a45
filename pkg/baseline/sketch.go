package baseline

import (
	"math"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

const (
	accuracy = 0.01
	// maxBins spans a factor of 3000 below the longest duration; shorter ones count in the lowest bin.
	maxBins = 400
	longest = 24 * time.Hour
)

type sketch struct {
	bins  *store.CollapsingLowestDenseStore
	calls int
}

// scale fails only for an invalid accuracy.
func scale() *mapping.LogarithmicMapping {
	m, _ := mapping.NewLogarithmicMapping(accuracy)
	return m
}

// binOf has a minimum of one microsecond.
func binOf(d time.Duration) int {
	return scale().Index(float64(min(max(d, time.Microsecond), longest)))
}

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

func (s *sketch) bin(quantile float64) int {
	return s.bins.KeyAtRank(math.Ceil(float64(quantile * float64(s.calls-1))))
}

// above needs a nonempty sketch.
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

func (s *sketch) each(f func(bin, calls int)) {
	if s.bins == nil {
		return
	}
	s.bins.ForEach(func(bin int, calls float64) bool {
		f(bin, int(calls))
		return false
	})
}

// halve keeps every second call by duration, hence quantiles.
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
