package probe

import (
	"time"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// Stats returns what the probe has done so far. It may be called at any time.
func (p *Probe) Stats() Stats {
	c, now := p.kernel.Counters(), clock.Monotonic()
	s := Stats{
		RingFull:        c[kernel.LifeCounterLOST_RING],
		TableFull:       c[kernel.LifeCounterLOST_TABLE],
		ShareFull:       c[kernel.LifeCounterLOST_SHARE],
		CallsFull:       c[kernel.LifeCounterLOST_CALLS],
		OverQuota:       c[kernel.LifeCounterLOST_QUOTA],
		LongEnvironment: c[kernel.LifeCounterCUT_ENV],
		Undecodable:     p.undecodable.Load(),
		Programs:        map[string]ProgramStats{},
		Maps:            p.kernel.Entries(),
		Observed:        time.Duration(now - p.opened),
		Attached:        p.kernel.Gate.Attached(now),
	}
	s.Tracked = s.Maps["processes"]
	p.kernel.Programs(func(name string, program *ebpf.Program) {
		if st, err := program.Stats(); err == nil {
			s.Programs[name] = ProgramStats{Runs: st.RunCount, Time: st.Runtime, Missed: st.RecursionMisses}
		}
	})
	return s
}
