package probe

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

// A run may lose something between the look at its losses and its end.
func TestALossIsReportedOnceWhenItsRunEnds(t *testing.T) {
	harness.Root(t)
	side := harness.Must(kernel.Open(kernel.Options{Ring: 1 << 16, Processes: 16}, func(*kernel.Side) {}))(t)
	defer side.Close(0)
	l := losses{kernel: side, said: map[kernel.LifeLostKey]uint64{}}
	lose := func(all uint64) {
		reason := uint32(kernel.LifeCounterLOST_CALLS)
		harness.Check(t, side.Life.Losses.Put(kernel.LifeLostKey{Root: kernel.Key{Tgid: 1}, Reason: reason}, all))
		harness.Check(t, side.Life.Counters.Put(reason, all))
	}
	lose(5)
	harness.Equal(t, l.new()[0].Count, 5, "at first")
	lose(7)
	l.forget(nil)
	harness.Equal(t, l.new()[0].Count, 2, "since")
	l.forget(nil)
	harness.Equal(t, len(l.said), 0, "remembered")
}
