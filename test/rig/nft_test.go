//go:build linux

package rig

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const ruleset = `table ip nat { # handle 1
	chain POSTROUTING { # handle 4
		ip saddr 10.192.0.9 accept # handle 5
	}
}
table inet cni_plugins_masquerade { # handle 7
	comment "Masquerading"
	chain masq_checks { # handle 2
		ip saddr 10.192.0.2 ip daddr != 10.192.0.0/20 masquerade comment "a-b, net: rig0net0" # handle 8
		ip saddr 10.88.0.2 ip daddr != 10.88.0.0/16 masquerade comment "c-d, net: podman" # handle 9
		ip6 saddr fd63:6e69::2 ip6 daddr != fd63:6e69::/64 masquerade # handle 10
	}
}
table ip6 cni_hostport { # handle 8
	chain hostports { # handle 1
		tcp dport 18080 dnat to [fd63:6e69::2]:80 comment "id" # handle 15
	}
}
`

func TestNftablesRulesOfASubnetGoAndOthersStay(t *testing.T) {
	got := nftWithoutSubnets(parseNft(ruleset), subnets(0))
	want := `delete rule inet cni_plugins_masquerade masq_checks handle 8
delete rule inet cni_plugins_masquerade masq_checks handle 10
delete rule ip6 cni_hostport hostports handle 15
`
	harness.Equal(t, got, want, "script")
}

func TestPluginsTablesGoUnlessTheyWereThereBefore(t *testing.T) {
	got := nftWithoutTables(parseNft(ruleset), []string{"inet cni_plugins_masquerade"})
	harness.Equal(t, got, "delete table ip6 cni_hostport\n", "script")
}
