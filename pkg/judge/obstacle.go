package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Obstacle returns a clause, and the fix if it is certain.
func Obstacle(o event.Obstacle) (says, remedy string) {
	const again, persist = "delete the pod, so that the ADD of a new one sets it", "; set it also in /etc/sysctl.d"
	says = o.Name + ", which the pod's ADD set, is gone"
	switch o.Kind {
	case event.ObstacleSwitch:
		return o.Name + " is 0", "sysctl -w " + text.Shell(o.Name+"=1") + persist +
			"; to find what resets it: grep -rs forward /etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d"
	case event.ObstacleTable:
		return fmt.Sprintf("the kernel's table of %s is full: %d of %d entries", o.Name, o.Used, o.Limit),
			"sysctl -w " + text.Shell(fmt.Sprintf("%s=%d", o.Option, 2*o.Limit)) + persist
	case event.ObstacleRoute:
		return says, again + "; if systemd-networkd runs, set " +
			"ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no in networkd.conf and restart it"
	case event.ObstacleFilter:
		return o.Name + ", which the pod's ADD set, is gone or empty", again +
			"; if firewalld runs, set FlushAllOnReload=no in firewalld.conf; nothing on the node may " +
			"flush rules of others (iptables -F, nft flush ruleset)"
	case event.ObstacleNeighbor:
		return o.Name, again + "; if systemd-udevd runs, set MACAddressPolicy=none for veth interfaces in a .link file " +
			"(systemd.link)"
	case event.ObstacleReused:
		return o.Name, "ip neigh del " + o.Option + "; if new pods often get addresses of pods just removed, update the " +
			"plugin so that it announces them (ARP), or give the network a larger range"
	case event.ObstacleProxy:
		if o.Option != "" {
			return o.Name, "sysctl -w " + text.Shell(o.Option+"=1") + "; read the log of the agent that should set it"
		}
		return o.Name, "add a default route on this node (ip route add default via ROUTER): with proxy ARP it answers for " +
			"addresses that it has a route to"
	case event.ObstacleGone:
		return says, again
	}
	switch {
	case o.Certain() && o.Chain.Handle > 0:
		return fmt.Sprintf("the first rule of %s drops or rejects every packet", o.Name),
			Accept(o.Chain) + "; remove it from what sets it (/etc/iptables/rules.v4, /etc/nftables.conf), too"
	case o.Chain.Handle > 0:
		return fmt.Sprintf("a rule of %s drops or rejects packets that none of the %d rules before it accepts", o.Name,
			o.Chain.Rules), ""
	case o.Certain():
		return fmt.Sprintf("the policy of %s is drop, and it has no rule", o.Name),
			Accept(o.Chain) + "; stop what sets it (Docker, a firewall service), or let it accept the pods' subnets"
	}
	return fmt.Sprintf("the policy of %s drops packets that none of its %d rules accepts", o.Name, o.Chain.Rules), ""
}

var plainName = regexp.MustCompile(`^[A-Za-z][\w.-]*$`)

// Accept returns the command that has a chain accept.
func Accept(c *event.Chain) string {
	switch {
	case c.Backend == "iptables-legacy" && c.Family == "ip6":
		return "ip6tables-legacy -P FORWARD ACCEPT"
	case c.Backend == "iptables-legacy":
		return "iptables-legacy -P FORWARD ACCEPT"
	}
	// nft parses its arguments again.
	if !plainName.MatchString(c.Family) || !plainName.MatchString(c.Table) || !plainName.MatchString(c.Name) {
		return "run nft list chains, and set the policy of that chain to accept"
	}
	if c.Handle > 0 {
		return fmt.Sprintf("nft delete rule %s %s %s handle %d", c.Family, c.Table, c.Name, c.Handle)
	}
	return fmt.Sprintf("nft chain %s %s %s '{policy accept;}'", c.Family, c.Table, c.Name)
}

// places are for drops without a reason. by precedes "dropped".
type dropKind struct {
	cause           LateCause
	reasons, places []string
	at              string
	by, remedy      string
	vague           bool          // ambiguous
	chains          []event.Chain // none: any
}

func (k *dropKind) is(d event.Drop) bool {
	if k.cause == LateNoNeighbor {
		return d.Unresolved()
	}
	if d.Reason == "" || d.Reason == unspecified {
		return isIn(d.Place, k.places)
	}
	return slices.Contains(k.reasons, d.Reason) && strings.HasPrefix(d.Place, k.at)
}

func isIn(place string, functions []string) bool {
	return slices.ContainsFunc(functions, func(f string) bool { return strings.HasPrefix(place, f) })
}

const (
	unspecified = "NOT_SPECIFIED"
	allow       = "check the NetworkPolicies of the pod's namespace; find the rule by "
	blackholes  = "run ip route show table all type blackhole (IPv6: ip -6 route); delete that route (ip route del), " +
		"and read the log of the agent that set it"
	programs = "run bpftool net show dev DEVICE, then tc filter show dev DEVICE ingress and egress, to find the " +
		"program; read the log of its agent"
)

var dropKinds = []dropKind{
	{
		cause: LateFilter, reasons: []string{"NETFILTER_DROP"}, at: "nft_do_chain", by: "nftables", remedy: allow + "nft list ruleset",
		chains: []event.Chain{{Backend: "nftables"}},
	},
	{
		cause: LateFilter, reasons: []string{"NETFILTER_DROP"}, places: []string{"nf_hook_slow"}, vague: true,
		by:     "netfilter (a rule of iptables-legacy, or connection tracking; before Linux 6.7 also nftables)",
		remedy: allow + "iptables-legacy-save and nft list ruleset; conntrack -S counts drops of connection tracking",
	},
	{
		cause: LateNoNeighbor, by: "no neighbor on DEVICE answered, so the kernel",
	},
	{
		cause: LateTable, reasons: []string{"NEIGH_CREATEFAIL"}, by: "the table of neighbors is full, so the kernel",
		remedy: "raise net.ipv4.neigh.default.gc_thresh3 and net.ipv6.neigh.default.gc_thresh3 (sysctl shows them, sysctl -w " +
			"sets them); set both also in /etc/sysctl.d",
	},
	{
		cause: LateRPFilter, reasons: []string{"IP_RPFILTER"}, by: "the reverse path filter of DEVICE",
		remedy: "sysctl -w net/ipv4/conf/DEVICE/rp_filter=2, or add the missing route through DEVICE to the packets' source",
	},
	{
		cause: LateBlackhole, places: []string{"dst_discard"}, by: "a blackhole route or the route of a removed interface",
		remedy: blackholes, vague: true,
	},
	{
		cause: LateMTU, reasons: []string{"PKT_TOO_BIG"}, by: "the MTU of the next link is too small, so the kernel",
		remedy: "set mtu in the CNI configuration to the smallest MTU on the way (tracepath names it), and let ICMP through",
	},
	{
		cause: LateProgram, reasons: []string{"TC_INGRESS"}, remedy: programs,
		by: "a program or filter at the tc ingress of DEVICE",
	},
	{
		cause: LateProgram, reasons: []string{"TC_EGRESS"}, remedy: programs,
		by: "a program or filter at the tc egress of DEVICE",
	},
	{
		cause: LateProgram, reasons: []string{"XDP"}, by: "an XDP program on DEVICE", remedy: programs,
		places: []string{"veth_xdp_rcv_skb", "do_xdp_generic", "netif_receive_generic_xdp"},
	},
	{
		cause: LateProgram, reasons: []string{"BPF_CGROUP_EGRESS"}, by: "a BPF program of the pod's cgroup",
		remedy: "run bpftool cgroup tree to find the program; read the log of its agent",
	},
	{
		cause: LateChecksum, reasons: checksums, by: "the checksum is wrong, so the kernel", vague: true,
		remedy: "switch checksum offloading off on the overlay or uplink interface of the sending node: ethtool -K " +
			"INTERFACE tx-checksum-ip-generic off",
	},
	{
		cause: LateHairpin, reasons: []string{"IP_LOCAL_SOURCE"}, vague: true,
		by: "packets with a source address of the receiver's own came in at DEVICE, so the kernel",
		remedy: "have the service proxy masquerade a pod's connections to its own Service (kube-router: " +
			"--hairpin-mode=true); without a Service, look for a second host with that address",
	},
	{
		cause: LateNoRoute, reasons: []string{"IP_INNOROUTES", "IP_OUTNOROUTES"}, by: "there is no route, so the kernel",
		remedy: "compare ip route with the pods' subnets",
	},
	{
		cause: LateForwarding, reasons: []string{"IP_INADDRERRORS"}, vague: true,
		by: "forwarding on DEVICE is off or a route is unreachable, so the kernel",
	},
}

var checksums = []string{"TCP_CSUM", "UDP_CSUM", "IP_CSUM", "ICMP_CSUM"}

func (k *dropKind) fits(o event.Obstacle) bool {
	switch o.Kind {
	case event.ObstaclePolicy:
		return k.cause == LateFilter && k.may(func(c event.Chain) bool {
			return c.Backend == o.Chain.Backend && (c.Name == "" || c.Table == o.Chain.Table && c.Name == o.Chain.Name)
		})
	case event.ObstacleTable:
		if o.Name == "connection tracking" {
			return k.cause == LateFilter && k.may(ofConntrack)
		}
		return k.cause == LateTable || k.cause == LateNoNeighbor
	case event.ObstacleSwitch:
		return k.cause == LateForwarding
	}
	return true
}

func (k *dropKind) proves(o *event.Obstacle) bool {
	return k == nil || !k.vague || o.Kind == event.ObstaclePolicy && o.Certain() ||
		o.Kind == event.ObstacleTable && len(k.chains) == 1 && ofConntrack(k.chains[0])
}

func (k *dropKind) may(is func(event.Chain) bool) bool {
	return len(k.chains) == 0 || slices.ContainsFunc(k.chains, is)
}

func ofConntrack(c event.Chain) bool { return c.Backend == "conntrack" }

func kindOf(d event.Drop) *dropKind {
	if d.Place == "ip_error" && d.Reason == unspecified { // its other errors have reasons
		return &dropKind{cause: LateBlackhole, by: "a blackhole route", remedy: blackholes}
	}
	for _, k := range dropKinds {
		if k.is(d) {
			k.place(d)
			return &k
		}
	}
	return nil
}

func (k *dropKind) place(d event.Drop) {
	switch {
	case k.cause == LateProgram && d.ProgramID != 0:
		of, name := "", strings.TrimSpace(fmt.Sprintf("%s (id %d)", d.Program, d.ProgramID))
		if strings.HasPrefix(d.Program, "cil_") {
			of = "Cilium's "
		}
		named := strings.NewReplacer("a program or filter", of+"program "+name, "an XDP program", of+"XDP program "+name)
		k.by = named.Replace(k.by)
		k.remedy = fmt.Sprintf("read the log of the agent that loaded it; bpftool prog show id %d has the time", d.ProgramID)
	case k.cause == LateNoNeighbor && d.Guarded:
		k.vague, k.by = true, "no neighbor on DEVICE answered, or a BPF program on the way took its packets, so the kernel"
	case k.cause != LateFilter:
	case len(d.Chains) > 0:
		var all []string
		for _, c := range d.Chains {
			all = append(all, chainName(c))
		}
		k.chains, k.by = d.Chains, strings.Join(all, " or ")
		if c := d.Chains[0]; len(d.Chains) == 1 && !ofConntrack(c) {
			k.vague, k.remedy = false, allow+ruleList(c)
			if d.InPod {
				k.remedy += " in the pod's network namespace"
			}
		}
	case d.Neighbor && !strings.Contains(d.Peer, ":"):
		k.by, k.remedy, k.vague = "nftables or arptables", "find the rule by nft list ruleset and arptables-legacy -L", false
	case d.Hook != "":
		k.by += " at hook " + d.Hook
	}
}

func chainName(c event.Chain) string {
	switch {
	case ofConntrack(c):
		return "connection tracking"
	case c.Backend == "nftables":
		return fmt.Sprintf("nftables chain %s of table %s %s", c.Name, c.Family, c.Table)
	}
	return fmt.Sprintf("%stables-legacy chain %s of table %s", c.Family, c.Name, c.Table)
}

func ruleList(c event.Chain) string {
	switch {
	case !plainName.MatchString(c.Family) || !plainName.MatchString(c.Table):
		return "nft list ruleset"
	case c.Backend == "nftables":
		return fmt.Sprintf("nft list table %s %s", c.Family, c.Table)
	}
	return fmt.Sprintf("%stables-legacy -t %s -S", c.Family, c.Table)
}

func dropped(c model.Connected) (main *dropKind, clauses []string) {
	var asked, asks bool
	for _, d := range c.Drops {
		k := kindOf(d)
		if k == nil && freed(d) {
			continue
		}
		asked = asked || d.Neighbor
		switch {
		case k == nil, asks && k.cause == LateNoNeighbor: // its consequence
		case main == nil:
			k.remedy = strings.ReplaceAll(k.remedy, "DEVICE", text.Shell(d.Device))
			k.vague = k.vague || asked && k.cause == LateNoNeighbor
			main, asks = k, d.Neighbor
		case k.cause != main.cause:
			main.vague = true
		}
		clauses = append(clauses, clause(d, k))
	}
	return main, clauses
}

func clause(d event.Drop, k *dropKind) string {
	by, where, what := "the kernel", "on the node", packets(d.Count)+" to "
	if k != nil {
		by = strings.ReplaceAll(k.by, "DEVICE", d.Device)
	}
	if d.InPod {
		where = "in the pod"
	}
	if d.Back {
		what = packets(d.Count) + " from "
	}
	if d.Neighbor {
		what = solicited(d)
	}
	seen := strings.Join(slices.DeleteFunc([]string{d.Reason, d.Place}, func(s string) bool { return s == "" }), " in ")
	return fmt.Sprintf("%s dropped %s%s %s (%s)", by, what, d.Peer, where, seen)
}

func solicited(d event.Drop) string {
	protocol, what, about := "ARP", "requests", "for"
	if strings.Contains(d.Peer, ":") {
		protocol = "NDP"
	}
	if d.Back {
		what, about = "answers", "of"
	}
	return fmt.Sprintf("%d %s %s %s ", d.Count, protocol, what, about)
}

func packets(n uint64) string { return text.Count(int(n), "packet") }

// freed: its connection ended.
func freed(d event.Drop) bool {
	if d.Neighbor { // not for this host
		return isIn(d.Place, []string{"arp_", "ndisc_", "icmpv6_", "ip6_mc_input", "ip6_protocol_deliver"})
	}
	if slices.Contains(checksums, d.Reason) {
		return false
	}
	return d.Reason == "QUEUE_PURGE" || strings.HasPrefix(d.Reason, "TCP_") || strings.HasPrefix(d.Reason, "SOCKET_") ||
		isIn(d.Place, []string{"tcp_", "sk_", "skb_", "__skb", "sock_", "inet_"})
}
