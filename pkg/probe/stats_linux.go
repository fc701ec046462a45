package probe

import (
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Stats returns what the probe has done so far. It may be called at any time.
func (p *Probe) Stats() Stats {
	c, now := p.counters(), clock.Monotonic()
	s := Stats{
		RingFull:        c[bpfCounterLOST_RING],
		TableFull:       c[bpfCounterLOST_TABLE],
		ShareFull:       c[bpfCounterLOST_SHARE],
		CallsFull:       c[bpfCounterLOST_CALLS],
		OverQuota:       c[bpfCounterLOST_QUOTA],
		LongEnvironment: c[bpfCounterCUT_ENV],
		Undecodable:     p.undecodable.Load(),
		Programs:        map[string]ProgramStats{},
		Maps:            p.entries(),
		Observed:        time.Duration(now - p.opened),
		Attached:        p.inside.gate.attached(now),
	}
	s.Tracked = s.Maps["processes"]
	programs := map[string]*ebpf.Program{"exec": p.objects.OnExec, "fork": p.objects.OnFork, "exit": p.objects.OnExit}
	if p.inside.all != nil {
		for name, program := range p.inside.all.Programs {
			programs[strings.TrimPrefix(name, "on_")] = program
		}
	}
	for name, program := range programs {
		if st, err := program.Stats(); err == nil {
			s.Programs[name] = ProgramStats{Runs: st.RunCount, Time: st.Runtime, Missed: st.RecursionMisses}
		}
	}
	return s
}

// entries counts what is in each of the kernel side's tables.
func (p *Probe) entries() map[string]int {
	o, in := &p.objects, &p.inside.maps
	n := map[string]int{}
	for name, m := range map[string]*ebpf.Map{
		"processes": o.Processes, "calls": o.Calls, "losses": o.Losses, "accounts": o.Accounts,
		"conns": in.Conns, "pairs": in.Pairs, "contentions": in.Contentions, "awaited": in.Awaited,
	} {
		if m != nil { // the inside of plugins is looked into
			n[name] = count(m)
		}
	}
	return n
}

func count(m *ebpf.Map) (n int) {
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for entries := m.Iterate(); entries.Next(&key, &value); {
		n++
	}
	return n
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
