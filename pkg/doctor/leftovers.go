package doctor

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// nothingIsLeftOver: a CNI that is not in use has left no interface and no rules.
func nothingIsLeftOver(f *Facts) ([]Finding, error) {
	if err := first(f.CRI.Err, f.Folder.Err, f.Network.Err, f.Processes.Err, f.Containers.Err); err != nil {
		return nil, err
	}
	used := slices.Concat(networks(f.CRI.Value.Loaded), winners(f))
	// Multus hands on to networks that are not in the folder.
	if slices.ContainsFunc(used, func(n event.Network) bool {
		return slices.ContainsFunc(n.Plugins, func(p event.Plugin) bool { return p.Type == "multus" || p.Type == "multus-shim" })
	}) {
		used = append(used, f.Folder.Value.Networks...)
	}
	var found []Finding
	for _, c := range cnis() {
		if uses(used, c) || c.runs(f) != "" {
			continue
		}
		var evidence []string
		for _, l := range f.Network.Value.Links {
			if matches(c.links, l.Name) {
				evidence = append(evidence, sayf("interface %s", l.Name))
			}
		}
		chains := map[string]int{}
		for _, k := range f.Chains.Value {
			if matches(c.chains, k.Name) {
				chains[k.Backend+" "+k.Family+" "+k.Table]++
			}
		}
		var tables []string
		for table, n := range chains {
			tables = append(tables, sayf("%s: %s of it", table, plural(n, "chain")))
		}
		slices.Sort(tables)
		evidence = append(evidence, tables...)
		if len(evidence) == 0 {
			continue
		}
		if len(evidence) > listed {
			evidence = append(evidence[:listed], sayf("and %d more", len(evidence)-listed))
		}
		found = append(found, Finding{
			Level: Warning, Summary: sayf("%s is not used here, and has left something behind", c.name),
			Evidence: append(evidence, "used: "+describe(used)),
			Remedy:   []string{c.remedy},
		})
	}
	return found, f.Chains.Err
}
