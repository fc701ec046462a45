package nri

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A bucket is a quarter of a power of two; the last one begins at 8 s.
const (
	perOctave = 4
	octaves   = 33
	buckets   = perOctave * octaves
)

type times struct {
	buckets [buckets]atomic.Uint64
	max     atomic.Int64
}

func (t *times) add(d time.Duration) {
	t.buckets[bucketOf(d)].Add(1)
	for {
		longest := t.max.Load()
		if int64(d) <= longest || t.max.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, perOctave)) // no buckets below 4 ns
	octave := bits.Len64(n) - 1
	return min(octave*perOctave+int(n>>(octave-2))&3, buckets-1)
}

func upperBound(bucket int) time.Duration {
	octave, quarter := bucket/perOctave, bucket%perOctave
	return time.Duration((perOctave + quarter + 1) << octave / perOctave)
}

func (t *times) snapshot() Times {
	s := Times{Max: time.Duration(t.max.Load())}
	for i := range t.buckets {
		s.buckets[i] = t.buckets[i].Load()
		s.Count += s.buckets[i]
	}
	return s
}

// Times is a distribution of durations.
type Times struct {
	Count   uint64
	Max     time.Duration
	buckets [buckets]uint64
}

// Quantile returns a duration that the share q (0 to 1) did not exceed, up to 25 % too long; 0 without samples.
func (t Times) Quantile(q float64) time.Duration {
	var seen uint64
	for i, n := range t.buckets {
		seen += n
		if n > 0 && float64(seen) >= q*float64(t.Count) && i < buckets-1 {
			return min(upperBound(i), t.Max)
		}
	}
	return t.Max
}
