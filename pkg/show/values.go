package show

import (
	"math/bits"
)

const (
	// exactly is the number of values kept per row: enough for a p99.
	exactly = 10_000
	// valuesMax bounds all values to 24 MB. Rows beyond it keep valuesLeast or more.
	valuesMax   = 3 << 20
	valuesLeast = 16
	// Beyond these, rows and kinds of calls count as other.
	rowsMost        = 1000
	populationsMost = 100
	other           = "other"
)

type room struct{ values, rows int }

// values holds the exact number, sum and maximum, and a random sample.
type values struct {
	n        int
	sum      float64
	max      float64
	kept     []float64
	averaged bool // some are a series' mean
}

// add counts a value. Without room, each value stays with equal probability (Vitter 1985, algorithm R).
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

// drawn returns a pseudo-random number below n (splitmix64).
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
