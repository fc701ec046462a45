package doctor

import (
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/version"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// versionsAreKnown: containerd's libcni knows the cniVersion of the networks it uses.
func versionsAreKnown(f *fact.Facts) ([]Finding, error) {
	if f.Folder.Err != nil {
		return nil, f.Folder.Err
	}
	var found []Finding
	for _, n := range fact.Winners(f) {
		v := n.CNIVersion
		if v == "" {
			v = "0.1.0" // the specification's word for none
		}
		known := version.All.SupportedVersions()
		// containerd 1.7 has libcni 1.1, which ends at 1.0.0.
		if f.Runtime.Err == nil && strings.HasPrefix(strings.TrimPrefix(f.Runtime.Value.Version, "v"), "1.") {
			known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == "1.1.0" })
		}
		if slices.Contains(known, v) {
			continue
		}
		found = append(found, Finding{
			Level: Problem, Summary: fact.Sayf("network %s wants a CNI version that containerd does not know", n.Name),
			Evidence: []string{fact.Sayf("%s: cniVersion %s", n.File, v), fact.Sayf("containerd %s knows %s", f.Runtime.Value.Version, strings.Join(known, ", "))},
			Remedy:   []string{fact.Sayf("set cniVersion in %s to one of these, mostly 1.0.0", n.File)},
		})
	}
	return found, nil
}
