package probe

import "github.com/cilium/ebpf"

// Stats returns what the probe has done so far. It may be called at any time.
func (p *Probe) Stats() Stats {
	c := p.counters()
	s := Stats{
		RingFull:        c[bpfCounterLOST_RING],
		TableFull:       c[bpfCounterLOST_TABLE],
		LongEnvironment: c[bpfCounterCUT_ENV],
		Undecodable:     p.undecodable.Load(),
		Programs:        map[string]ProgramStats{},
	}
	var tgid uint32
	var entry bpfProcess
	for entries := p.objects.Processes.Iterate(); entries.Next(&tgid, &entry); {
		s.Tracked++
	}
	for name, program := range map[string]interface {
		Stats() (*ebpf.ProgramStats, error)
	}{"exec": p.objects.OnExec, "fork": p.objects.OnFork, "exit": p.objects.OnExit} {
		if st, err := program.Stats(); err == nil {
			s.Programs[name] = ProgramStats{Runs: st.RunCount, Time: st.Runtime}
		}
	}
	return s
}

// counters sums the kernel's counters over all CPUs. A counter that cannot be read
// stays at zero: that must never stop the reader.
func (p *Probe) counters() (sum [bpfCounterCOUNTERS]uint64) {
	for i := range sum {
		var each []uint64
		if p.objects.Counters.Lookup(uint32(i), &each) == nil {
			for _, n := range each {
				sum[i] += n
			}
		}
	}
	return sum
}
