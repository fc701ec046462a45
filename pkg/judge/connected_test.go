package judge

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestWhyAFirstConnectionWasLate(t *testing.T) {
	var (
		blocked = event.Tries{Opened: 2, SYNs: 4}
		off     = event.Obstacle{Kind: event.ObstacleSwitch, Name: "net.ipv4.ip_forward"}
		full    = event.Obstacle{Kind: event.ObstacleTable, Name: "connection tracking", Option: "net.netfilter.nf_conntrack_max", Used: 1000, Limit: 1000}
	)
	policy := func(rules int) event.Obstacle {
		return event.Obstacle{Kind: event.ObstaclePolicy, Name: "nftables ip filter FORWARD", Chain: &event.Chain{Backend: "nftables", Family: "ip", Table: "filter", Name: "FORWARD", Rules: rules}}
	}
	for name, test := range map[string]struct {
		tries     event.Tries
		obstacles []event.Obstacle
		cause     LateCause
		says      string
		remedy    string
	}{
		"a neighbor that is silent": {
			event.Tries{Opened: 2, Failed: 1, SYNs: 1, Silent: []string{"10.22.0.9"}},
			[]event.Obstacle{off},
			LateNoNeighbor, "10.22.0.9 did not answer ARP; the kernel repeated a SYN 1 times", "",
		},
		"its own kernel said so":                      {event.Tries{Opened: 1, Failed: 1, Unresolved: 1}, []event.Obstacle{off, policy(0)}, LateNoNeighbor, "no neighbor, such as the gateway, answered ARP for 1 packet", ""},
		"its own kernel said so, and a table is full": {event.Tries{Unresolved: 1}, []event.Obstacle{full}, LateTable, "the kernel's table of connection tracking is full", "sysctl -w"},
		"proxy ARP is off": {
			event.Tries{Unresolved: 2},
			[]event.Obstacle{{Kind: event.ObstacleProxy, Name: "it is 0", Option: "net/ipv4/conf/v0/proxy_arp"}},
			LateNoNeighbor, "it is 0; no neighbor, such as the gateway, answered ARP for 2 packets", "sysctl -w net/ipv4/conf/v0/proxy_arp=1",
		},
		"proxy ARP without a route": {event.Tries{}, []event.Obstacle{{Kind: event.ObstacleProxy, Name: "no route"}}, LateNoNeighbor, "no route", "ip route add default"},
		"the address of an earlier pod": {
			event.Tries{},
			[]event.Obstacle{{Kind: event.ObstacleReused, Name: "it has another", Option: "10.22.0.5 dev cni0"}},
			LateNeighbor, "it has another", "ip neigh del 10.22.0.5 dev cni0",
		},
		"no route":              {event.Tries{Unroutable: 2}, nil, LateNoRoute, "the pod had no route for 2 packets", ""},
		"a policy that rejects": {event.Tries{Opened: 3, Unreached: 2, Failed: 2}, nil, LateUnreachable, "ICMP reported 2 times", ""},
		"a policy elsewhere":    {blocked, nil, LateUnanswered, "the kernel repeated a SYN 4 times without an answer: a policy may drop it", ""},
		"no listener, on a node that does not forward": {event.Tries{Opened: 4, Failed: 3}, []event.Obstacle{off}, LateNoListener, "3 attempts failed at once", ""},
		"DNS without an answer":                        {event.Tries{Opened: 1, Asked: 6, Answered: 1}, nil, LateNoReply, "5 of 6 UDP datagrams", ""},
		"it tried nothing":                             {event.Tries{Opened: 1}, []event.Obstacle{policy(0)}, LateNotTried, "the pod had tried no connection before", ""},
		"it was called, and tried nothing":             {event.Tries{}, nil, LateNotTried, "the pod had tried no connection before", ""},
		"what cannot be told":                          {event.Tries{Opened: 5, Asked: 2, Answered: 2}, nil, LateCause(CauseUnexplained), "", ""},
		"a rule of a pod that tried nothing": {
			event.Tries{},
			[]event.Obstacle{policy(0), event.Gone("rule from 10.0.0.5/32 lookup 7")},
			LateGone, "rule from 10.0.0.5/32 lookup 7, which the pod's ADD set, is gone", "ManageForeignRoutingPolicyRules=no",
		},
		"chains": {
			blocked,
			[]event.Obstacle{off, event.Gone("chain CNI-DN-07")},
			LateGone, "chain CNI-DN-07, which the pod's ADD set, is gone or empty; the kernel repeated a SYN", "FlushAllOnReload=no",
		},
		"a permanent neighbor": {
			blocked,
			[]event.Obstacle{{Kind: event.ObstacleNeighbor, Name: "the neighbor is another one"}},
			LateNeighbor, "the neighbor is another one; the kernel", "MACAddressPolicy=none",
		},
		"an address": {blocked, []event.Obstacle{event.Gone("address 10.0.0.1/32 dev veth1")}, LateGone, "address 10.0.0.1/32 dev veth1, which the pod's ADD set, is gone", "delete the pod"},
		"forwarding is off": {
			blocked,
			[]event.Obstacle{off},
			LateForwarding, "net.ipv4.ip_forward is 0; the kernel repeated a SYN 4 times without an answer", "sysctl -w net.ipv4.ip_forward=1",
		},
		"a policy that drops": {
			blocked,
			[]event.Obstacle{policy(0)},
			LatePolicy, "the policy of nftables ip filter FORWARD is drop, and it has no rule", "nft chain ip filter FORWARD '{policy accept;}'",
		},
		"a policy whose rules may accept": {
			blocked,
			[]event.Obstacle{policy(7)},
			LatePolicy, "the policy of nftables ip filter FORWARD drops packets that none of its 7 rules accepts", "",
		},
		"such a policy, and a full table": {
			event.Tries{Asked: 1},
			[]event.Obstacle{policy(7), full},
			LateTable, "the kernel's table of connection tracking is full: 1000 of 1000 entries; 1 of 1 UDP", "sysctl -w net.netfilter.nf_conntrack_max=2000",
		},
		"a full table, of which ARP is a consequence": {event.Tries{SYNs: 1, Silent: []string{"10.22.0.1"}}, []event.Obstacle{full}, LateTable, "the kernel's table", "sysctl"},
	} {
		t.Run(name, func(t *testing.T) {
			c := model.Connected{Flight: model.Flight{Command: "ADD", ContainerID: "a"}, End: 1e9, At: 13e9, Tries: &test.tries, Obstacles: test.obstacles}
			if Connected(c) != nil {
				t.Error("it was in time")
			}
			c.Late = true
			v := Connected(c)
			says, ok := strings.CutPrefix(v.Says, "the first connection came 12s after the ADD")
			if !ok || v.Cause != Cause(test.cause) || !strings.HasPrefix(strings.TrimPrefix(says, ": "), test.says) ||
				!strings.Contains(v.Remedy, test.remedy) || test.remedy == "" && v.Remedy != "" {
				t.Errorf("%s: %s → %s", v.Cause, v.Says, v.Remedy)
			}
		})
	}
	if v := Connected(model.Connected{Late: true}); v != nil {
		t.Errorf("nothing was looked at: %+v", v)
	}
}
