package kernel

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
)

// counting is a side that has nothing but counters, each of which counted on every CPU.
func counting(tb testing.TB) (s *Side, cpus int) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root")
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: uint32(LifeCounterCOUNTERS)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	if cpus, err = ebpf.PossibleCPU(); err != nil {
		tb.Fatal(err)
	}
	for i := range uint32(LifeCounterCOUNTERS) {
		values := make([]uint64, cpus)
		for cpu := range values {
			values[cpu] = uint64(10*i) + uint64(cpu)
		}
		if err := m.Put(i, values); err != nil {
			tb.Fatal(err)
		}
	}
	s = new(Side)
	s.Life.Counters = m
	return s, cpus
}

func TestCountersAreSumsOverAllCPUs(t *testing.T) {
	s, cpus := counting(t)
	all := s.Counters()
	for i, got := range all {
		if want := uint64(10*i*cpus + cpus*(cpus-1)/2); got != want {
			t.Errorf("counter %d is %d, want %d", i, got, want)
		}
	}
	if one := s.countersOneByOne(); one != all {
		t.Errorf("one by one %d, at once %d", one, all)
	}
}

func BenchmarkCounters(b *testing.B) {
	s, _ := counting(b)
	for name, read := range map[string]func() [LifeCounterCOUNTERS]uint64{"at once": s.Counters, "one by one": s.countersOneByOne} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read()
			}
		})
	}
}
