package doctor

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

func podsHaveTheirOwnAddresses(f *fact.Facts) ([]Finding, error) {
	pods := podSubnets(f)
	if len(pods) == 0 {
		return nil, notApplicable("doctor finds no pod subnet in loaded networks, kube-proxy or the controller manager")
	}
	var bridges []string
	for _, l := range f.CRI.Value.Loaded {
		bridges = append(bridges, l.Bridges...)
	}
	own := map[string]bool{}
	var found []Finding
	clash := func(pod podSubnet, prefix netip.Prefix, what string) {
		if !pod.Overlaps(prefix) || own[pod.String()+what] {
			return
		}
		own[pod.String()+what] = true
		found = append(found, Warning.finding(
			fact.Sayf("the pods' subnet %s overlaps the node's network %s", pod, prefix),
			[]string{fact.Sayf("%s comes from %s", pod, pod.from), what},
			"set another pod subnet in the CNI's pool and the controller manager's --cluster-cidr; in a new cluster: "+
				"kubeadm init --pod-network-cidr",
			"then recreate the pods; until then they keep their addresses"))
	}
	for _, pod := range pods {
		for _, l := range f.Network.Value.Links {
			if ofPods(l, bridges) {
				continue
			}
			for _, a := range l.Addresses {
				clash(pod, a.Masked(), fact.Sayf("interface %s has %s", l.Name, a.String()))
			}
		}
		for _, r := range f.Network.Value.Routes {
			link := linkNamed(f.Network.Value.Links, r.Link)
			if ofPods(link, bridges) || !r.Learned && !tunnel(link) {
				continue // the CNI's routes to other nodes
			}
			clash(pod, r.Prefix, fact.Sayf("route to %s by %s", r.Prefix.String(), r.Link))
		}
	}
	return found, nil
}

type podSubnet struct {
	netip.Prefix
	from string
}

func podSubnets(f *fact.Facts) (all []podSubnet) {
	for _, l := range f.CRI.Value.Loaded {
		for _, s := range l.Subnets {
			all = append(all, podSubnet{s, "network " + l.Name})
		}
	}
	for _, p := range f.Processes.Value {
		for _, s := range p.Settings {
			if s.Key != "cluster-cidr" {
				continue
			}
			for _, part := range strings.Split(s.Value, ",") {
				if prefix, err := netip.ParsePrefix(strings.TrimSpace(part)); err == nil {
					all = append(all, podSubnet{prefix.Masked(), p.Name + "'s " + s.From})
				}
			}
		}
	}
	return all
}

func ofPods(l fact.Link, bridges []string) bool {
	switch {
	case l.Name == "lo", l.Type == "dummy", slices.Contains(bridges, l.Name):
		return true
	case l.Type == "veth" && !slices.ContainsFunc(l.Addresses, func(a netip.Prefix) bool { return !a.IsSingleIP() }):
		return true // a pod's end of ptp; a containerized node has a whole network on a veth
	}
	for _, c := range fact.CNIs() {
		if fact.Matches(c.Links, l.Name) {
			return true
		}
	}
	return fact.Matches([]string{
		"cni*", "tunl0", "lxc*", "kube-*", "nodelocaldns", "ip6tnl0", "br-int", "ovs-system",
		"eni*", "gke*",
	}, l.Name)
}

func tunnel(l fact.Link) bool { return l.Type == "tuntap" || l.Type == "wireguard" || l.Type == "ppp" }

func linkNamed(links []fact.Link, name string) fact.Link {
	if i := slices.IndexFunc(links, func(l fact.Link) bool { return l.Name == name }); i >= 0 {
		return links[i]
	}
	return fact.Link{Name: name}
}
