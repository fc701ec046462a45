package judge

import "slices"

// hostLocalScan: host-local opens a file for every taken address, the only long computation it has. Waits
// for its lock and its disk are no evidence.
func hostLocalScan(e *evidence) *finding {
	f := &finding{Verdict: Verdict{
		Cause: CauseScan, Says: "in host-local itself, which reads a file for each address that is taken",
		Remedy: CauseScan.remedy(),
		Report: "Azure/azure-container-networking#2817",
	}, kind: Plugins}
	for i := range e.Parts {
		p := &e.Parts[i]
		reads := p.Kind == SystemCalls && p.In == "host-local" && slices.Contains([]string{"openat", "getdents64", "newfstatat", "statx"}, p.Name)
		if reads || p.Kind == Plugins && p.Name == "host-local" {
			f.time += p.Time
		}
	}
	return f
}
