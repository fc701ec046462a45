package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

func podsAreForwarded(f *fact.Facts) ([]Finding, error) {
	found := fullTables(f)
	if !routesPods(f) {
		return found, notApplicable("no loaded network needs the node to forward")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Forwarding.Value.Switches)) {
		if f.Forwarding.Value.Switches[name] {
			continue
		}
		option := "net." + strings.ReplaceAll(name, "/", ".")
		found = append(found, Finding{
			Level: Problem, Summary: fact.Sayf("the node does not forward packets of pods: %s is 0", option),
			Evidence: []string{fact.Sayf("/proc/sys/net/%s: 0", name), "pods reach only pods of their own bridge"},
			Remedy:   []string{fact.Sayf("sysctl -w %s=1; set it in /etc/sysctl.d, too, and find what resets it", option)},
		})
	}
	for _, c := range f.Chains.Value {
		if c.Drops {
			found = append(found, dropping(c))
		}
	}
	return found, f.Chains.Err
}

// dropping reports a chain that drops what no rule accepts. With rules, the CNI may have accepted its pods, as is
// common beside Docker.
func dropping(c fact.Chain) Finding {
	where := c.Backend + " " + c.Family + " " + c.Table + " " + c.Name
	accept := fact.Sayf("nft chain %s %s %s '{ policy accept; }'", c.Family, c.Table, c.Name)
	switch {
	case c.Backend == "iptables-legacy" && c.Family == "ip6":
		accept = "ip6tables-legacy -P FORWARD ACCEPT"
	case c.Backend == "iptables-legacy":
		accept = "iptables-legacy -P FORWARD ACCEPT"
	}
	finding := Finding{
		Level: Problem,
		Summary: fact.Sayf("the firewall drops every packet that the node forwards: the policy of %s is drop, and it has "+
			"no rule", where),
		Evidence: []string{where + ": policy drop, 0 rules"},
		Remedy:   []string{accept + "; stop what sets it (Docker, a firewall service), or let it accept the pods' subnets"},
	}
	if c.Rules > 0 {
		finding.Level = Note
		finding.Summary = fact.Sayf("the firewall drops forwarded packets that no rule accepts: the policy of %s is drop",
			where)
		finding.Evidence = []string{fact.Sayf("%s: policy drop, %s", where, plural(c.Rules, "rule"))}
		finding.Remedy = []string{"nothing, if pods reach other nodes; otherwise: " + accept}
	}
	return finding
}

// fullTables reports the kernel's full tables.
func fullTables(f *fact.Facts) (found []Finding) {
	for _, t := range f.Forwarding.Value.Tables {
		if !t.Full() {
			continue
		}
		found = append(found, Finding{
			Level: Problem, Summary: fact.Sayf("the kernel's table of %s is full: %d of %d entries", t.Name, t.Used, t.Limit),
			Evidence: []string{fact.Sayf("%s = %d", t.Option, t.Limit), "the kernel drops packets for which it has no room"},
			Remedy:   []string{fact.Sayf("sysctl -w %s=%d; set it in /etc/sysctl.d, too", t.Option, 2*t.Limit)},
		})
	}
	return found
}

// routesPods reports whether the node routes packets of a loaded network. The listed plugins use the node's own link
// instead.
func routesPods(f *fact.Facts) bool {
	return slices.ContainsFunc(f.CRI.Value.Loaded, func(l fact.Loaded) bool {
		return len(l.Plugins) > 0 && !slices.Contains([]string{"macvlan", "ipvlan", "vlan", "host-device", "sriov"},
			l.Plugins[0].Type)
	})
}
