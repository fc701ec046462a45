package doctor

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// rulesHaveAnOwner: rules that kube-proxy made are there only where it is.
func rulesHaveAnOwner(f *fact.Facts) ([]Finding, error) {
	if f.Chains.Err != nil {
		return nil, f.Chains.Err
	}
	byTable := map[string][]string{}
	ipvs := false
	for _, c := range f.Chains.Value {
		if ofKubeProxy(c) {
			table := c.Backend + " " + c.Family + " " + c.Table
			byTable[table] = append(byTable[table], c.Name)
		}
	}
	for _, l := range f.Network.Value.Links {
		ipvs = ipvs || l.Name == "kube-ipvs0"
	}
	if len(byTable) == 0 && !ipvs {
		return nil, nil
	}
	proxy, err := liveProxy(f)
	if len(proxy) > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range f.Processes.Value {
		if p.HostNet && (p.Name == "k3s" || p.Name == "kubelite") { // kube-proxy is a part of them, unless it was switched off
			return nil, nil
		}
	}
	var evidence []string
	for table, chains := range byTable {
		slices.Sort(chains)
		evidence = append(evidence, fact.Sayf("%s: %s, as %s", table, plural(len(chains), "chain"), fact.List(chains)))
	}
	slices.Sort(evidence)
	if ipvs {
		evidence = append(evidence, "the interface kube-ipvs0")
	}
	return []Finding{{
		Level: Warning, Summary: "kube-proxy is gone, and its rules are still there: they send services to where they were",
		Evidence: append(evidence, "there is no process and no container kube-proxy"),
		Remedy: []string{
			"kube-proxy --cleanup (from its image, privileged, with the host's network), or for iptables: iptables-save | grep -v KUBE | iptables-restore; ip6tables-save | grep -v KUBE | ip6tables-restore",
			"for nftables: nft delete table ip kube-proxy; nft delete table ip6 kube-proxy; for IPVS: ipvsadm --clear; ip link delete kube-ipvs0",
		},
	}}, nil
}

// ofKubeProxy tells chains of kube-proxy from those that kubelet makes for itself
// (KUBE-KUBELET-CANARY, KUBE-FIREWALL, KUBE-MARK-*, before 1.28 KUBE-POSTROUTING).
func ofKubeProxy(c fact.Chain) bool {
	if c.Backend == "nftables" && c.Table == "kube-proxy" {
		return true
	}
	switch c.Name {
	case "KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-CANARY", "KUBE-PROXY-FIREWALL", "KUBE-LOAD-BALANCER", "KUBE-NODE-PORT":
		return true
	}
	for _, prefix := range []string{"KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-FW-", "KUBE-XLB-"} {
		if strings.HasPrefix(c.Name, prefix) {
			return true
		}
	}
	return false
}
