package clock

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTimesOfProcAcrossSuspends(t *testing.T) {
	const second = int64(1e9)
	boot, mono := 100*second, 90*second // suspended for 10 s before
	s := newSuspends(func() (int64, int64) { return boot, mono })
	pass := func(awake, asleep int64) {
		mono += awake * second
		boot += (awake + asleep) * second
		s.Look()
	}
	pass(5, 0) // until 105, 95
	pass(1, 30)
	pass(10, 0) // until 146, 106
	pass(0, 3600)
	for at, want := range map[int64]int64{
		20: 10, 100: 90, 105: 95, 106: 96, 136: 96, 140: 100, 146: 106, 3746: 106,
		4000: 360,
	} {
		if got := s.Monotonic(at * second); got != want*second {
			t.Errorf("%d s since the boot are %d s, want %d", at, got/second, want)
		}
	}
	for range 2 * suspendsMax {
		pass(1, 5)
	}
	if len(s.all) > suspendsMax {
		t.Errorf("%d are remembered", len(s.all))
	}
	harness.Equal(t, s.Monotonic(boot), mono)
}
