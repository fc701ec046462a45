package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/test/harness"
)

// Full tables always count, forwarding only for routed networks.
func TestWhatKeepsPacketsOfPods(t *testing.T) {
	facts := func(plugin string, on bool, used int) *fact.Facts {
		f := &fact.Facts{}
		f.CRI.Value.Loaded = []fact.Loaded{{Network: event.Network{Plugins: []event.Plugin{{Type: plugin}}}}}
		f.Forwarding.Value.Switches = map[string]bool{"ipv4/ip_forward": on}
		f.Forwarding.Value.Tables = []fact.Table{{Name: "connection tracking", Option: "net.netfilter.nf_conntrack_max", Used: used, Limit: 1000}}
		return f
	}
	with := func(change func(*fact.Forwarding, *fact.Loaded)) *fact.Facts {
		f := facts("bridge", true, 0)
		f.CRI.Value.Loaded[0].Bridges, f.Forwarding.Value.Default = []string{"cni0"}, []string{"eth0.100"}
		change(&f.Forwarding.Value, &f.CRI.Value.Loaded[0])
		return f
	}
	off := func(name string) *fact.Facts {
		return with(func(f *fact.Forwarding, _ *fact.Loaded) { f.Switches[name] = false })
	}
	unbridged := func(plugin, chain string) *fact.Facts {
		f := facts(plugin, true, 0)
		f.Forwarding.Value.Unbridged = map[string]string{"ip": "x is 0", "ip6": "y is 0"}
		f.Chains.Value = []fact.Chain{{Backend: "nftables", Family: "ip", Name: chain}, {Backend: "nftables", Family: "ip6", Name: chain}}
		if plugin == "flannel" {
			f.CRI.Value.Loaded[0].Delegates = []string{"bridge", "host-local"}
		}
		return f
	}
	of := func(f *fact.Facts, subnets ...string) *fact.Facts {
		for _, s := range subnets {
			f.CRI.Value.Loaded[0].Subnets = append(f.CRI.Value.Loaded[0].Subnets, netip.MustParsePrefix(s))
		}
		return f
	}
	six := func(c fact.Chain, address string) *fact.Facts {
		f := facts("calico", true, 0)
		c.Backend, c.Family, c.Table, c.Name, c.Drops = "nftables", "ip6", "t", "f", true
		f.Chains.Value = []fact.Chain{c}
		f.Held.Value.Living = []leak.Attachment{{Addresses: []string{"10.0.0.2/32", address}}}
		return f
	}
	rejects := func(rules int) *fact.Facts {
		f := facts("bridge", true, 0)
		f.Chains.Value = []fact.Chain{{Backend: "nftables", Family: "ip", Table: "t", Name: "f", Drops: true, Handle: 7, Rules: rules}}
		return f
	}
	const skipped = "a pod may get no answer from a Service whose endpoint is on the pod's own bridge: "
	for name, test := range map[string]struct {
		facts *fact.Facts
		says  string
	}{
		"Services on a bridge":             {unbridged("flannel", "KUBE-SERVICES"), skipped + "x is 0"},
		"Services of both families":        {of(unbridged("bridge", "KUBE-SERVICES"), "10.1.0.0/24", "fd00::/64"), skipped + "x is 0, y is 0"},
		"Services of IPv6 alone":           {of(unbridged("bridge", "KUBE-SERVICES"), "fd00::/64"), skipped + "y is 0"},
		"IPv4 is off, and no pod has it":   {of(facts("bridge", false, 0), "fd00::/64"), ""},
		"a policy for IPv6":                {six(fact.Chain{}, "fd00::2/128"), "the firewall drops every IPv6 packet that the node forwards: the policy of nftables ip6 t f is drop, and it has no rule"},
		"a rule for IPv6":                  {six(fact.Chain{Handle: 7}, "fd00::2/128"), "the firewall drops every IPv6 packet that the node forwards: the first rule of nftables ip6 t f drops or rejects every packet"},
		"a policy for IPv6, with rules":    {six(fact.Chain{Rules: 2}, "fd00::2/128"), "the firewall drops forwarded packets that no rule accepts: the policy of nftables ip6 t f is drop"},
		"a policy for IPv6, no pod has it": {six(fact.Chain{}, "10.0.0.3/32"), ""},
		"a bridge without kube-proxy":      {unbridged("bridge", "KUBE-FIREWALL"), ""},
		"kube-proxy without a bridge":      {unbridged("ptp", "KUBE-SERVICES"), ""},
		"a rule that rejects":              {rejects(0), "the firewall drops every packet that the node forwards: the first rule of nftables ip t f drops or rejects every packet"},
		"a rule that rejects after others": {rejects(3), "the firewall drops forwarded packets that no rule accepts: a rule of nftables ip t f drops or rejects packets that none of the 3 rules before it accepts"},
		"off on the bridge of pods":        {off("ipv4/conf/cni0/forwarding"), "the node does not forward packets of pods: net.ipv4.conf.cni0.forwarding is 0"},
		"off on the way out":               {off("ipv4/conf/eth0.100/forwarding"), "the node does not forward packets of pods: net.ipv4.conf.eth0/100.forwarding is 0"},
		"off on another interface":         {off("ipv4/conf/eth1/forwarding"), ""},
		"off for IPv6, which no pod has":   {off("ipv6/conf/all/forwarding"), ""},
		"off for IPv6": {with(func(f *fact.Forwarding, l *fact.Loaded) {
			f.Switches["ipv6/conf/all/forwarding"], l.Subnets = false, []netip.Prefix{netip.MustParsePrefix("fd00::/64")}
		}), "the node does not forward packets of pods: net.ipv6.conf.all.forwarding is 0"},
		"sound":                {facts("bridge", true, 949), ""},
		"off":                  {facts("bridge", false, 0), "the node does not forward packets of pods: net.ipv4.ip_forward is 0"},
		"off, and not needed":  {facts("macvlan", false, 0), ""},
		"full":                 {facts("bridge", true, 950), "the kernel's table of connection tracking is full: 950 of 1000 entries"},
		"full, with a macvlan": {facts("macvlan", true, 1000), "the kernel's table of connection tracking is full: 1000 of 1000 entries"},
	} {
		found, _ := podsAreForwarded(test.facts)
		said := ""
		for _, f := range found {
			said += f.Summary
		}
		harness.Equal(t, said, test.says, name)
	}
}

// The first pod by name stands in the summary, whatever the order of libcni's files.
func TestLostPartsStandInTheOrderOfPods(t *testing.T) {
	gone := func(pod string) fact.Gone {
		return fact.Gone{
			Attachment: leak.Attachment{Pod: event.Pod{Namespace: "shop", Name: pod}},
			Obstacles:  []event.Obstacle{{Kind: event.ObstacleGone, Name: "route 10.1.0.2/32 table 7"}},
		}
	}
	for _, all := range [][]fact.Gone{{gone("b"), gone("a")}, {gone("a"), gone("b")}} {
		f := &fact.Facts{}
		f.Gone.Value = all
		found := harness.Must(podsKeepTheirNetwork(f))(t)
		harness.Equal(t, len(found), 1)
		harness.Says(t, found[0].Summary, "pod shop/a has lost")
	}
}

// Before: a pod whose ADD set thousands of things made a line that no recording may have.
func TestALookHasOneThingOfAPod(t *testing.T) {
	var set []string
	for i := range 2000 {
		set = append(set, fmt.Sprint("chain CNI-", i))
	}
	none := func(context.Context) ([]fact.Chain, error) { return nil, nil }
	found := InTheWay(t.Context(), Options{Address: "/run/none", ConfDir: t.TempDir(), Chains: none}, Want{
		Sandboxes: []string{"a", "b"}, Held: []leak.Attachment{{ContainerID: "a", Set: set}},
	})
	harness.DeepEqual(t, found, map[string][]event.Obstacle{"a": {event.Gone("chain CNI-0")}})
}
