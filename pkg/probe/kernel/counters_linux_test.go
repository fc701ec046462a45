package kernel

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
)

// counting is a side with counters only, each of which counted.
func counting(tb testing.TB) *Side {
	tb.Helper()
	harness.Root(tb)
	spec, err := LoadLife()
	harness.Check(tb, err)
	m, err := ebpf.NewMap(spec.Maps["counters"])
	harness.Check(tb, err)
	tb.Cleanup(func() { _ = m.Close() })
	s := new(Side)
	if s.counters, err = m.Memory(); err != nil {
		tb.Fatal(err)
	}
	for i := range uint32(LifeCounterCOUNTERS) {
		harness.Check(tb, m.Put(i, uint64(10*i+1)))
	}
	return s
}

func TestCountersAreWhatTheProgramsCounted(t *testing.T) {
	for i, got := range counting(t).Counters() {
		harness.Equal(t, got, uint64(10*i+1), "counter", i)
	}
	harness.Equal(t, new(Side).Counters(), [LifeCounterCOUNTERS]uint64{}, "where nothing was opened")
}

func BenchmarkCounters(b *testing.B) {
	s := counting(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Counters()
	}
}
