package kernel

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
)

func TestCountersAreWhatTheProgramsCounted(t *testing.T) {
	harness.Root(t)
	spec := harness.Must(LoadLife())(t)
	m := harness.Must(ebpf.NewMap(spec.Maps["counters"]))(t)
	defer m.Close()
	s := new(Side)
	harness.Equal(t, s.Counters(), [LifeCounterCOUNTERS]uint64{}, "where nothing was opened")
	harness.Check(t, s.counters.open(m))
	for i := range uint32(LifeCounterCOUNTERS) {
		harness.Check(t, m.Put(i, uint64(10*i+1)))
	}
	for range 2 {
		for i, got := range s.Counters() {
			harness.Equal(t, got, uint64(10*i+1), "counter", i)
		}
		harness.Check(t, s.counters.close())
	}
}
