package show

import (
	"hash/maphash"
	"math/bits"
)

const (
	// exactly is how many values of one row are kept as they are; of more, a random sample of
	// as many: a p99 of 10,000 values is as good as one of millions.
	exactly = 10_000
	// valuesMax is how many are kept in all, 24 MB; a row that comes when there are so many
	// has a sample of at least valuesLeast.
	valuesMax   = 3 << 20
	valuesLeast = 16
	// rowsMost and populationsMost are how many rows and kinds of calls are told apart. All
	// others are one, called other: nobody reads a thousand lines.
	rowsMost        = 1000
	populationsMost = 100
	other           = "other"
)

// room is how much the values of a sample may still take.
type room struct{ values, rows int }

// values are durations. Their number, sum and maximum are exact; of many only a random sample is kept.
type values struct {
	n    int
	sum  float64
	max  float64
	kept []float64
	// averaged: some are the mean of a series.
	averaged bool
}

// add takes one more value. Where there is no room for all, each one stays with the same
// chance (Vitter 1985, algorithm R).
func (v *values) add(x float64, room *room) {
	v.n++
	v.sum += x
	v.max = max(v.max, x)
	if len(v.kept) == v.n-1 && v.n <= exactly && (room.values > 0 || v.n <= valuesLeast) {
		v.kept = append(v.kept, x)
		room.values--
		return
	}
	if i := drawn(v.n); i < len(v.kept) {
		v.kept[i] = x
	}
}

// drawn returns a pseudo-random number below n, the same for each n (splitmix64).
func drawn(n int) int {
	z := uint64(n) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	high, _ := bits.Mul64(z^z>>31, uint64(n))
	return int(high)
}

func (v *values) sampled() bool { return v.n > len(v.kept) }

func (v *values) total() float64 {
	if v.sampled() {
		return v.sum
	}
	return sum(v.kept)
}

// thinned returns n of the values, evenly spaced; all if there are no more.
func thinned(values []float64, n int) []float64 {
	if len(values) <= n {
		return values
	}
	few := make([]float64, n)
	for i := range few {
		few[i] = values[i*len(values)/n]
	}
	return few
}

// distinct counts distinct names. It keeps 8 bytes of each.
type distinct struct {
	seed maphash.Seed
	seen map[uint64]struct{}
}

func newDistinct() *distinct {
	return &distinct{maphash.MakeSeed(), map[uint64]struct{}{}}
}

func (d *distinct) add(name string) { d.seen[maphash.String(d.seed, name)] = struct{}{} }

func (d *distinct) count() int { return len(d.seen) }

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
