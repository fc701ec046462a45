//go:build linux

package rig

import (
	"net/netip"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// saved is the rules of bridge (ipMasq) and portmap for a pod of rig 0, beside another network's.
const saved = `*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CNI-0aaa - [0:0]
:CNI-1bbb - [0:0]
:CNI-DN-0aaa - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A POSTROUTING -s 10.192.0.2/32 -m comment --comment "name: \"rig0net0\" id: \"a\"" -j CNI-0aaa
-A POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"podman\" id: \"b\"" -j CNI-1bbb
-A CNI-0aaa -d 10.192.0.0/20 -m comment --comment "name: \"rig0net0\" id: \"a\"" -j ACCEPT
-A CNI-0aaa ! -d 224.0.0.0/4 -m comment --comment "name: \"rig0net0\" id: \"a\"" -j MASQUERADE
-A CNI-1bbb -d 10.88.0.0/16 -m comment --comment "name: \"podman\" id: \"b\"" -j ACCEPT
-A CNI-DN-0aaa -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.192.0.2:80
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"rig0net0\" id: \"a\"" -m multiport --dports 8080 -j CNI-DN-0aaa
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
COMMIT
`

func TestRulesOfASubnetGoAndOthersStay(t *testing.T) {
	got := withoutSubnets(parseTables(saved), subnets(0))
	want := `*nat
-D POSTROUTING -s 10.192.0.2/32 -m comment --comment "name: \"rig0net0\" id: \"a\"" -j CNI-0aaa
-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"rig0net0\" id: \"a\"" -m multiport --dports 8080 -j CNI-DN-0aaa
-F CNI-0aaa
-F CNI-DN-0aaa
-X CNI-0aaa
-X CNI-DN-0aaa
COMMIT
`
	harness.Equal(t, got, want, "script")
}

func TestNothingToRemoveIsNoScript(t *testing.T) {
	harness.Equal(t, withoutSubnets(parseTables(saved), subnets(1)), "", "script for a subnet without rules")
}

func TestSharedChainsStayWhileAnotherNetworkHasAPod(t *testing.T) {
	harness.Equal(t, withoutShared(parseTables(saved), nil), "", "script")
}

func TestSharedChains(t *testing.T) {
	const idle = `*nat
:PREROUTING ACCEPT [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
:CNI-halfmade - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
COMMIT
`
	for _, c := range []struct {
		name   string
		before []string
		want   string
	}{
		{"none was there before", nil, `*nat
-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-F CNI-HOSTPORT-DNAT
-F CNI-HOSTPORT-MASQ
-F CNI-halfmade
-X CNI-HOSTPORT-DNAT
-X CNI-HOSTPORT-MASQ
-X CNI-halfmade
COMMIT
`},
		{"those of before stay", []string{"nat/CNI-HOSTPORT-DNAT", "nat/CNI-HOSTPORT-MASQ"}, `*nat
-F CNI-halfmade
-X CNI-halfmade
COMMIT
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Equal(t, withoutShared(parseTables(idle), c.before), c.want, "script")
		})
	}
}

func TestAddressesOfASubnet(t *testing.T) {
	subnet := []netip.Prefix{netip.MustParsePrefix("10.192.0.0/16"), netip.MustParsePrefix("fd63:6e69::/48")}
	for rule, want := range map[string]bool{
		"-A FORWARD -d 10.192.3.4/32 -j ACCEPT":                     true,
		"-A X -p tcp -j DNAT --to-destination 10.192.3.4:80":        true,
		"-A X -p tcp -j DNAT --to-destination [fd63:6e69::2]:80":    true,
		"-A X -s fd63:6e69::/64 -j ACCEPT":                          true,
		"-A FORWARD -d 10.193.3.4/32 -j ACCEPT":                     false,
		"-A FORWARD -d 10.0.0.0/8 -j ACCEPT":                        false,
		"-A FORWARD -m comment --comment \"10.192.x\" -j CNI-ADMIN": false,
	} {
		harness.Equal(t, within(rule, subnet), want, rule)
	}
}
