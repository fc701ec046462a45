package doctor

import "github.com/cniscope/cniscope/pkg/doctor/fact"

// binariesAreThere: every program that the networks' chains run, IPAM and delegates
// included, is in a CNI bin folder and can be run.
func binariesAreThere(f *fact.Facts) ([]Finding, error) {
	if f.Binaries.Err != nil {
		return nil, f.Binaries.Err
	}
	var found []Finding
	for _, b := range f.Binaries.Value {
		if b.Wrong == "" {
			continue
		}
		found = append(found, Finding{
			Level: Problem, Summary: fact.Sayf("the CNI plugin %s cannot be run", b.Name),
			Evidence: []string{fact.Sayf("network %s needs it", b.Network), fact.Sayf("%s", b.Wrong)},
			Remedy:   []string{remedyFor(b.Name, f.CRI.Value.BinDirs)},
		})
	}
	return found, nil
}

// reference are the plugins of github.com/containernetworking/plugins.
func reference(name string) bool {
	switch name {
	case "bridge", "host-local", "portmap", "firewall", "tuning", "bandwidth", "loopback", "ptp", "macvlan", "ipvlan",
		"vlan", "host-device", "dhcp", "static", "sbr", "vrf", "dummy", "tap":
		return true
	}
	return false
}

func remedyFor(name string, dirs []string) string {
	dir := "/opt/cni/bin"
	if len(dirs) > 0 {
		dir = dirs[0]
	}
	if reference(name) {
		return fact.Sayf("install the reference plugins into %s (package kubernetes-cni or containernetworking-plugins, or a release of github.com/containernetworking/plugins)", dir)
	}
	return fact.Sayf("its own pod installs it into %s: see network-pods, and restart that pod", dir)
}
