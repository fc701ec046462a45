package doctor

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

// nothingIsLeftOver: a CNI that is not in use has left no interface and no rules.
func nothingIsLeftOver(f *fact.Facts) ([]Finding, error) {
	if err := cmp.Or(f.CRI.Err, f.Folder.Err, f.Network.Err, f.Processes.Err, f.Containers.Err); err != nil {
		return nil, err
	}
	used := slices.Concat(fact.Networks(f.CRI.Value.Loaded), fact.Winners(f))
	// Multus hands on to networks that are not in the folder.
	if slices.ContainsFunc(used, func(n event.Network) bool {
		return slices.ContainsFunc(n.Plugins, func(p event.Plugin) bool { return p.Type == "multus" || p.Type == "multus-shim" })
	}) {
		used = append(used, f.Folder.Value.Networks...)
	}
	var found []Finding
	for _, c := range fact.CNIs() {
		if uses(used, c) || runs(c, f) != "" {
			continue
		}
		var evidence []string
		for _, l := range f.Network.Value.Links {
			if fact.Matches(c.Links, l.Name) {
				evidence = append(evidence, fact.Sayf("interface %s", l.Name))
			}
		}
		chains := map[string]int{}
		for _, k := range f.Chains.Value {
			if fact.Matches(c.Chains, k.Name) {
				chains[k.Backend+" "+k.Family+" "+k.Table]++
			}
		}
		var tables []string
		for table, n := range chains {
			tables = append(tables, fact.Sayf("%s: %s of it", table, plural(n, "chain")))
		}
		slices.Sort(tables)
		evidence = append(evidence, tables...)
		if len(evidence) == 0 {
			continue
		}
		if len(evidence) > fact.Listed {
			evidence = append(evidence[:fact.Listed], fact.Sayf("and %d more", len(evidence)-fact.Listed))
		}
		found = append(found, Finding{
			Level: Warning, Summary: fact.Sayf("%s is not used here, and has left something behind", c.Name),
			Evidence: append(evidence, "used: "+describe(used)),
			Remedy:   []string{c.Remedy},
		})
	}
	return found, f.Chains.Err
}
