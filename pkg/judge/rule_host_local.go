package judge

import (
	"slices"
	"time"
)

// hostLocalScan: host-local opens a file for every taken address, its only long computation. Waits for its lock, disk
// or a CPU are no evidence.
func hostLocalScan(e *evidence) *finding {
	f := &finding{Verdict: Verdict{
		Cause: CauseScan, Says: "host-local read one file for each allocated address",
		Remedy: CauseScan.remedy(),
		Report: "Azure/azure-container-networking#2817",
	}, kind: Plugins}
	var read time.Duration
	for i := range e.Parts {
		p := &e.Parts[i]
		reads := p.Kind == SystemCalls && p.In == "host-local" && slices.Contains([]string{"openat", "getdents64", "newfstatat", "statx"}, p.Name)
		switch {
		case reads:
			read += p.Time
		case p.Kind == Plugins && p.Name == "host-local":
			f.time += e.computed(p)
		}
	}
	if read < f.time { // otherwise few calls waited for a disk
		f.time += read
	}
	return f
}

// computed is a plugin's time on a CPU: all, unless it waited longer for one.
func (e *evidence) computed(p *Part) time.Duration {
	var on, waited int64
	for i := range e.spans {
		if im := e.spans[i].image; im.Run != nil && im.Run.Plugin == p.Name {
			on, waited = on+im.CPU, waited+im.RunDelay
		}
	}
	if waited <= on {
		return p.Time
	}
	return min(p.Time, time.Duration(on))
}
