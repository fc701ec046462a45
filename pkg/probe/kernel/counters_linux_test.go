package kernel

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
)

// counting is a side with counters only, each of which counted.
func counting(tb testing.TB) *Side {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root")
	}
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
		if want := uint64(10*i + 1); got != want {
			t.Errorf("counter %d is %d, want %d", i, got, want)
		}
	}
	if none := new(Side).Counters(); none != [LifeCounterCOUNTERS]uint64{} {
		t.Errorf("where nothing was opened: %d", none)
	}
}

func BenchmarkCounters(b *testing.B) {
	s := counting(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Counters()
	}
}
