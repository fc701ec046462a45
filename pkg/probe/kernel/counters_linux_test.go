package kernel

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
)

func TestCountersAreWhatTheProgramsCounted(t *testing.T) {
	harness.Root(t)
	spec, err := LoadLife()
	harness.Check(t, err)
	m, err := ebpf.NewMap(spec.Maps["counters"])
	harness.Check(t, err)
	defer m.Close()
	s := new(Side)
	harness.Equal(t, s.Counters(), [LifeCounterCOUNTERS]uint64{}, "where nothing was opened")
	s.counters, err = m.Memory()
	harness.Check(t, err)
	for i := range uint32(LifeCounterCOUNTERS) {
		harness.Check(t, m.Put(i, uint64(10*i+1)))
	}
	for i, got := range s.Counters() {
		harness.Equal(t, got, uint64(10*i+1), "counter", i)
	}
}
