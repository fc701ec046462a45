package probe

import (
	"strings"
	"testing"
)

func TestArgumentsThatLeaveTheProbe(t *testing.T) {
	for _, test := range []struct {
		command string
		mode    Arguments
		want    string
		dropped int
	}{
		{
			"iptables -t nat -C POSTROUTING -s 10.1.2.3/32 -j CNI-1234 -m comment --comment pod-secret --wait", ArgumentsKnown,
			"-t nat -C POSTROUTING -s 10.1.2.3/32 -j CNI-1234 -m comment --comment … --wait", 1,
		},
		{
			"iptables -t nat -A X ! -d 224.0.0.0/4 --dport 80 --set-mark 0x2000", ArgumentsKnown,
			"-t nat -A X ! -d 224.0.0.0/4 --dport 80 …", 2,
		},
		{"iptables -w 5 -S", ArgumentsKnown, "-w 5 -S", 0},
		{"iptables -j s3cr3t/with/slashes", ArgumentsKnown, "-j …", 1},
		{"ip link set dev eth0 mtu 1500 up", ArgumentsKnown, "link set dev eth0 mtu 1500 up", 0},
		{"ip xfrm state add auth sha1 0xdeadbeef", ArgumentsKnown, "… add …", 5},
		{"ip addr add fd00::1%secret dev eth0", ArgumentsKnown, "addr add … dev eth0", 1},
		{"ip netns exec pod1 vpn dev s3cret via 10.1.2.3", ArgumentsKnown, "netns exec …", 6},
		{"ip xfrm state add src 10.1.2.3 dst fd00::1 enc aes 0011223344556677", ArgumentsKnown, "… add src 10.1.2.3 … fd00::1 …", 6},
		{"ip route add default via deadbeefdeadbeef", ArgumentsKnown, "route add default via …", 1},
		{
			"iptables -s deadbeef -d 10.1.2.0/255.255.255.0 --to-destination 10.1.2.3-10.1.2.9:80-90", ArgumentsKnown,
			"-s … -d 10.1.2.0/255.255.255.0 --to-destination 10.1.2.3-10.1.2.9:80-90", 1,
		},
		{
			"ip6tables -s !fd00::/64 --to-destination [fd00::2]:8080 -d ::1", ArgumentsKnown,
			"-s !fd00::/64 --to-destination [fd00::2]:8080 -d ::1", 0,
		},
		{"ip netns exec pod1 secret", ArgumentsAll, "netns exec pod1 secret", 0},
		{"nft -f /tmp/secret", ArgumentsKnown, "-f …", 1},
		{"nft add rule ip nat postrouting comment secret", ArgumentsKnown, "add rule ip nat …", 3},
		{"curl -H Authorization:secret https://x", ArgumentsKnown, "", 3},
		{"iptables -t nat", ArgumentsNone, "", 2},
		{"curl -H secret", ArgumentsAll, "-H secret", 0},
		{"curl a\x1b[31m", ArgumentsAll, `a\x1b[31m`, 0},
	} {
		args := strings.Split(test.command, " ")
		kept, dropped := sanitise(args[0], args[1:], test.mode)
		if got := strings.Join(kept, " "); got != test.want || dropped != test.dropped {
			t.Errorf("%s (%s):\n got %q, %d dropped\nwant %q, %d", test.command, test.mode, got, dropped, test.want, test.dropped)
		}
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	kept, dropped := sanitise("any", make([]string, 10_000), ArgumentsAll)
	if len(kept) != argumentsMax || dropped != 10_000-argumentsMax {
		t.Errorf("%d kept, %d dropped", len(kept), dropped)
	}
}
