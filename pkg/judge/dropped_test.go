package judge

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// As Linux 6.18 reported each; pkg/probe/drops tests these against the kernel.
func TestWhatDroppedThePacketsOfALateConnection(t *testing.T) {
	const to = " to 10.96.0.10:443 on the node"
	drop := func(reason, place string, n uint64) event.Drop {
		return event.Drop{Reason: reason, Place: place, Device: "eth1", Peer: "10.96.0.10:443", Count: n}
	}
	var (
		nft    = drop("NETFILTER_DROP", "nft_do_chain", 3)
		hook   = drop("NETFILTER_DROP", "nf_hook_slow", 3)
		silent = drop("NEIGH_FAILED", "neigh_invalidate", 3)
		back   = event.Drop{Reason: "IP_INNOROUTES", Place: "ip_error", Device: "eth1", Peer: "10.96.0.10:443", Count: 1, Back: true}
		inPod  = event.Drop{Reason: "NETFILTER_DROP", Place: "nft_do_chain", Peer: "10.96.0.10:443", Count: 2, InPod: true}
	)
	placed := func(d event.Drop, hook string, chains ...event.Chain) event.Drop {
		d.Hook, d.Chains = hook, chains
		return d
	}
	by := func(d event.Drop, program string) event.Drop {
		d.Program, d.ProgramID = program, 7
		return d
	}
	var (
		firewalld = event.Chain{Backend: "nftables", Family: "inet", Table: "firewalld", Name: "filter_FORWARD"}
		legacy    = event.Chain{Backend: "iptables-legacy", Family: "ip6", Table: "filter", Name: "FORWARD"}
		tracking  = event.Chain{Backend: "conntrack", Family: "ip", Name: "prerouting"}
		ofX       = event.Chain{Backend: "nftables", Family: "ip", Table: "t", Name: "x"}
		hostile   = event.Chain{Backend: "nftables", Family: "ip", Table: "t;reboot", Name: "x"}
		forged    = event.Chain{Backend: "nftables", Family: "ip;reboot", Table: "t", Name: "x"}
	)
	policy := func(backend string, rules int) event.Obstacle {
		return event.Obstacle{Kind: event.ObstaclePolicy, Name: backend + " x", Chain: &event.Chain{Backend: backend, Family: "ip", Table: "t", Name: "x", Rules: rules}}
	}
	table := func(name string) event.Obstacle {
		return event.Obstacle{Kind: event.ObstacleTable, Name: name, Option: "net.x", Used: 9, Limit: 9}
	}
	off := event.Obstacle{Kind: event.ObstacleSwitch, Name: "net.ipv4.ip_forward"}
	asks := func(reason, place, peer string) event.Drop {
		return event.Drop{Reason: reason, Place: place, Device: "eth1", Peer: peer, Count: 2, Neighbor: true}
	}
	guarded, answers := silent, asks("XDP", "do_xdp_generic", "fd00::1")
	guarded.Guarded, answers.Back = true, true
	some := func(all ...event.Drop) []event.Drop { return all }
	for name, test := range map[string]struct {
		drops     []event.Drop
		obstacles []event.Obstacle
		cause     LateCause
		certain   bool
		says      []string // in order
		remedy    string
	}{
		"nftables":                               {some(nft), nil, LateFilter, true, []string{": nftables dropped 3 packets" + to + " (NETFILTER_DROP in nft_do_chain); the kernel repeated a SYN"}, "nft list ruleset"},
		"nftables in the pod":                    {some(inPod), nil, LateFilter, true, []string{": nftables dropped 2 packets to 10.96.0.10:443 in the pod ("}, "nft list ruleset"},
		"nftables' chain in the pod":             {some(placed(inPod, "output", ofX)), nil, LateFilter, true, []string{": nftables chain x of table ip t dropped 2 packets to 10.96.0.10:443 in the pod ("}, "nft list table ip t in the pod's network namespace"},
		"its policy":                             {some(nft), []event.Obstacle{policy("nftables", 0)}, LatePolicy, true, []string{": the policy of nftables x is drop, and it has no rule; the kernel", "; nftables dropped 3 packets"}, "policy accept"},
		"another's policy":                       {some(nft), []event.Obstacle{policy("iptables-legacy", 0)}, LateFilter, true, []string{": nftables dropped"}, "nft list ruleset"},
		"nftables' chain":                        {some(placed(nft, "forward", firewalld)), nil, LateFilter, true, []string{": nftables chain filter_FORWARD of table inet firewalld dropped 3 packets" + to + " (NETFILTER_DROP in nft_do_chain); the kernel"}, "nft list table inet firewalld"},
		"one of nftables' chains":                {some(placed(nft, "forward", firewalld, ofX)), nil, LateFilter, true, []string{": nftables chain filter_FORWARD of table inet firewalld or nftables chain x of table ip t dropped 3"}, "nft list ruleset"},
		"a table with a hostile name":            {some(placed(nft, "forward", hostile)), nil, LateFilter, true, []string{": nftables chain x of table ip t;reboot dropped 3"}, "find the rule by nft list ruleset"},
		"a hostile family":                       {some(placed(nft, "forward", forged)), nil, LateFilter, true, []string{": nftables chain x of table ip;reboot t dropped 3"}, "find the rule by nft list ruleset"},
		"nftables' hook":                         {some(placed(inPod, "output")), nil, LateFilter, true, []string{": nftables at hook output dropped 2 packets"}, "nft list ruleset"},
		"the chain's policy":                     {some(placed(nft, "forward", ofX)), []event.Obstacle{policy("nftables", 0)}, LatePolicy, true, []string{": the policy of nftables x", "; nftables chain x of table ip t dropped"}, "policy accept"},
		"another chain's policy":                 {some(placed(nft, "forward", firewalld)), []event.Obstacle{policy("nftables", 0)}, LateFilter, true, []string{": nftables chain filter_FORWARD"}, "nft list table inet firewalld"},
		"a legacy chain":                         {some(placed(hook, "forward", legacy)), []event.Obstacle{table("connection tracking")}, LateFilter, true, []string{": ip6tables-legacy chain FORWARD of table filter dropped 3 packets" + to}, "ip6tables-legacy -t filter -S"},
		"connection tracking":                    {some(placed(hook, "prerouting", tracking)), []event.Obstacle{table("connection tracking")}, LateTable, true, []string{": the kernel's table of connection tracking is full", "; connection tracking dropped 3"}, "net.x=18"},
		"connection tracking with room":          {some(placed(hook, "prerouting", tracking)), []event.Obstacle{policy("iptables-legacy", 0)}, LateFilter, false, []string{": connection tracking dropped 3"}, "conntrack -S"},
		"a program":                              {some(by(drop("TC_INGRESS", "__netif_receive_skb_core", 3), "cil_from_container")), nil, LateProgram, true, []string{": Cilium's program cil_from_container (id 7) at the tc ingress of eth1 dropped 3"}, "bpftool prog show id 7"},
		"an XDP program":                         {some(by(drop("XDP", "do_xdp_generic", 3), "ddos")), nil, LateProgram, true, []string{": XDP program ddos (id 7) on eth1 dropped 3"}, "bpftool prog show id 7"},
		"netfilter":                              {some(hook), nil, LateFilter, false, []string{": netfilter (a rule of iptables-legacy, or connection tracking; before Linux 6.7 also nftables) dropped 3 packets" + to}, "iptables-legacy-save"},
		"before Linux 5.17":                      {some(drop("", "nf_hook_slow", 3)), nil, LateFilter, false, []string{"dropped 3 packets" + to + " (nf_hook_slow)"}, "iptables-legacy-save"},
		"a place alone":                          {some(drop("", "ip_rcv_finish_core", 3)), nil, LateUnanswered, true, []string{": the kernel repeated a SYN 3 times without an answer; the kernel dropped 3 packets" + to + " (ip_rcv_finish_core)"}, ""},
		"a legacy policy":                        {some(hook), []event.Obstacle{policy("iptables-legacy", 0)}, LatePolicy, true, []string{": the policy of iptables-legacy x", "; netfilter ("}, "iptables-legacy -P FORWARD ACCEPT"},
		"a full table, or a rule":                {some(hook), []event.Obstacle{table("connection tracking")}, LateTable, false, []string{": the kernel's table of connection tracking is full", "; netfilter ("}, "net.x=18"},
		"a full table, but nftables":             {some(nft), []event.Obstacle{table("connection tracking")}, LateFilter, true, []string{": nftables dropped"}, "nft list ruleset"},
		"a neighbor":                             {some(silent), nil, LateNoNeighbor, true, []string{": no neighbor on eth1 answered, so the kernel dropped 3 packets" + to}, ""},
		"a neighbor, IPv6":                       {some(drop("NOT_SPECIFIED", "neigh_invalidate", 1)), []event.Obstacle{off}, LateNoNeighbor, true, []string{": no neighbor on eth1 answered, so the kernel dropped 1 packet to"}, ""},
		"a neighbor, or a program":               {some(guarded), nil, LateNoNeighbor, false, []string{": no neighbor on eth1 answered, or a BPF program on the way took its packets, so the kernel dropped 3"}, ""},
		"a program that drops ARP":               {some(by(asks("TC_EGRESS", "__dev_queue_xmit", "10.96.0.1"), "ddos"), guarded), nil, LateProgram, true, []string{": program ddos (id 7) at the tc egress of eth1 dropped 2 ARP requests for 10.96.0.1 on the node (TC_EGRESS in __dev_queue_xmit); no neighbor"}, "bpftool prog show id 7"},
		"answers of NDP":                         {some(answers, silent), nil, LateProgram, true, []string{": an XDP program on eth1 dropped 2 NDP answers of fd00::1 on the node (XDP in do_xdp_generic); no neighbor"}, "bpftool net show"},
		"a chain that drops ARP":                 {some(asks("NETFILTER_DROP", "nf_hook_slow", "10.96.0.1"), silent), nil, LateFilter, true, []string{": nftables or arptables dropped 2 ARP requests for 10.96.0.1"}, "arptables-legacy -L"},
		"ARP dropped, unknown":                   {some(asks("QDISC_DROP", "__dev_queue_xmit", "10.96.0.1"), silent), nil, LateNoNeighbor, false, []string{": the kernel dropped 2 ARP requests", "; no neighbor on eth1 answered"}, ""},
		"ARP, and another kind":                  {some(nft, asks("TC_EGRESS", "__dev_queue_xmit", "10.96.0.1"), silent), nil, LateFilter, false, []string{": nftables dropped 3", "; a program or filter at the tc egress", "; no neighbor on eth1"}, "nft list ruleset"},
		"NDP, not for this host":                 {some(asks("NOT_SPECIFIED", "icmpv6_rcv", "fd00::1"), silent), nil, LateNoNeighbor, true, []string{": no neighbor on eth1 answered"}, ""},
		"neighbors' full table":                  {some(drop("NEIGH_CREATEFAIL", "ip_finish_output2", 3)), []event.Obstacle{table("neighbors (IPv4)")}, LateTable, true, []string{": the kernel's table of neighbors (IPv4) is full", "; the table of neighbors is full, so the kernel dropped"}, "net.x=18"},
		"it was full":                            {some(drop("NEIGH_CREATEFAIL", "ip6_finish_output2", 3)), nil, LateTable, true, []string{": the table of neighbors is full, so the kernel dropped 3"}, "raise net.ipv4.neigh.default.gc_thresh3"},
		"reverse path":                           {some(drop("IP_RPFILTER", "ip_rcv_finish_core", 3)), nil, LateRPFilter, true, []string{": the reverse path filter of eth1 dropped 3 packets"}, "sysctl -w net/ipv4/conf/eth1/rp_filter=2"},
		"a blackhole":                            {some(drop("NOT_SPECIFIED", "ip_error", 3)), nil, LateBlackhole, true, []string{": a blackhole route dropped 3"}, "type blackhole"},
		"a blackhole, without reasons of routes": {some(drop("", "ip_error", 3)), nil, LateUnanswered, true, []string{"; the kernel dropped 3 packets" + to + " (ip_error)"}, ""},
		"a blackhole, IPv6":                      {some(drop("NOT_SPECIFIED", "dst_discard_out", 3)), nil, LateBlackhole, false, []string{": a blackhole route or the route of a removed interface dropped 3"}, "type blackhole"},
		"too large":                              {some(drop("PKT_TOO_BIG", "ip_forward", 3)), nil, LateMTU, true, []string{": the MTU of the next link is too small, so the kernel dropped 3"}, "set mtu"},
		"tc":                                     {some(drop("TC_EGRESS", "__dev_queue_xmit", 3)), nil, LateProgram, true, []string{": a program or filter at the tc egress of eth1 dropped 3"}, "bpftool net show"},
		"XDP":                                    {some(drop("NOT_SPECIFIED", "veth_xdp_rcv_skb", 3)), nil, LateProgram, true, []string{": an XDP program on eth1 dropped 3"}, "bpftool net show"},
		"answers without a route":                {some(back), nil, LateNoRoute, true, []string{": there is no route, so the kernel dropped 1 packet from 10.96.0.10:443 on the node"}, "ip route"},
		"forwarding":                             {some(drop("IP_INADDRERRORS", "ip_error", 3)), []event.Obstacle{off}, LateForwarding, false, []string{": net.ipv4.ip_forward is 0", "; forwarding on eth1 is off or a route is unreachable, so"}, "sysctl -w net.ipv4.ip_forward=1"},
		"a checksum":                             {some(drop("TCP_CSUM", "tcp_v4_rcv", 3)), nil, LateChecksum, false, []string{": the checksum is wrong, so the kernel dropped 3 packets"}, "tx-checksum-ip-generic off"},
		"its own address":                        {some(drop("IP_LOCAL_SOURCE", "ip_rcv_finish_core", 3)), nil, LateHairpin, false, []string{": packets with a source address of the receiver's own came in at eth1, so the kernel dropped 3"}, "masquerade"},
		"a rule before others":                   {some(placed(nft, "forward", ofX)), []event.Obstacle{{Kind: event.ObstaclePolicy, Name: "nftables x", Chain: &event.Chain{Backend: "nftables", Family: "ip", Table: "t", Name: "x", Handle: 7}}}, LatePolicy, true, []string{": the first rule of nftables x drops or rejects every packet; the kernel"}, "nft delete rule ip t x handle 7"},
		"a rule for IPv6 alone":                  {nil, []event.Obstacle{{Kind: event.ObstaclePolicy, Name: "nftables x", Chain: &event.Chain{Backend: "nftables", Family: "ip6", Table: "t", Name: "x", Handle: 7}}}, LateUnanswered, true, []string{": the kernel repeated a SYN 3 times without an answer: a policy may"}, ""},
		"a policy for IPv6 alone":                {nil, []event.Obstacle{{Kind: event.ObstaclePolicy, Name: "nftables x", Chain: &event.Chain{Backend: "nftables", Family: "ip6", Table: "t", Name: "x"}}}, LateUnanswered, true, []string{": the kernel repeated a SYN 3 times without an answer: a policy may"}, ""},
		"a rule after others":                    {nil, []event.Obstacle{{Kind: event.ObstaclePolicy, Name: "nftables x", Chain: &event.Chain{Backend: "nftables", Family: "ip", Table: "t", Name: "x", Rules: 2, Handle: 7}}}, LateUnanswered, true, []string{": the kernel repeated a SYN 3 times without an answer: a policy may", "no route leads back"}, ""},
		"two kinds":                              {some(nft, silent), nil, LateFilter, false, []string{": nftables dropped 3", "; no neighbor on eth1 answered"}, "nft list ruleset"},
		"an unknown kind":                        {some(drop("OTHERHOST", "ip_rcv_core", 3)), nil, LateUnanswered, true, []string{": the kernel repeated a SYN 3 times without an answer; the kernel dropped 3 packets" + to + " (OTHERHOST in ip_rcv_core)"}, ""},
		"what the end of a connection frees":     {some(drop("QUEUE_PURGE", "skb_queue_purge_reason", 9), drop("NOT_SPECIFIED", "tcp_v4_do_rcv", 1)), nil, LateUnanswered, true, []string{": the kernel repeated a SYN 3 times without an answer: a policy may drop it"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := Connected(model.Connected{Flight: model.Flight{Command: "ADD"}, Late: true, Tries: &event.Tries{SYNs: 3}, Drops: test.drops, Obstacles: test.obstacles})
			rest := v.Says
			for _, part := range test.says {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Errorf("it lacks %q: %s", part, v.Says)
				}
				rest = after
			}
			if v.Cause != Cause(test.cause) || v.Certain != test.certain || !strings.Contains(v.Remedy, test.remedy) || (test.remedy == "") != (v.Remedy == "") {
				t.Errorf("%s, certain %v: %s\n→ %s", v.Cause, v.Certain, v.Says, v.Remedy)
			}
		})
	}
	ip, ip6 := policy("nftables", 0), policy("nftables", 0)
	ip6.Chain = &event.Chain{Backend: "nftables", Family: "ip6", Table: "t", Name: "x"}
	for name, test := range map[string]struct {
		addresses []string
		obstacle  event.Obstacle
		some, all bool
	}{
		"a chain of the pod's family": {[]string{"fd00::2"}, ip6, true, true},
		"of one of its families":      {[]string{"10.0.0.2", "fd00::2"}, ip6, true, false},
		"of the other":                {[]string{"fd00::2"}, ip, false, false},
		"a sysctl of the other":       {[]string{"fd00::2"}, off, false, false},
	} {
		v := Connected(model.Connected{Late: true, Addresses: test.addresses, Tries: &event.Tries{SYNs: 3}, Obstacles: []event.Obstacle{test.obstacle}})
		harness.Equal(t, v.Cause != Cause(LateUnanswered), test.some, name)
		harness.Equal(t, v.Cause != Cause(LateUnanswered) && v.Certain, test.all, name, "certain")
		never := Connected(model.Connected{Late: true, Never: true, Addresses: test.addresses, Tries: &event.Tries{SYNs: 3}, Obstacles: []event.Obstacle{test.obstacle}})
		harness.Equal(t, never != nil, test.all, name, "never")
	}
	late := model.Connected{Late: true, Drops: some(nft)}
	if v := Connected(late); v == nil || v.Cause != Cause(LateFilter) {
		t.Errorf("without the counters: %+v", v)
	}
	late.Drops[0].Device = "a;b"
	late.Drops[0].Reason = "IP_RPFILTER"
	if v := Connected(late); !strings.Contains(v.Remedy, `net/ipv4/conf/'a;b'/rp_filter=2`) {
		t.Errorf("an interface of any name: %s", v.Remedy)
	}
}
