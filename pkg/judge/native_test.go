package judge

import (
	"fmt"
	"testing"
)

func TestNativeReplacements(t *testing.T) {
	for command, want := range map[string]string{
		"iptables-restore": "nftables", "ip6tables": "nftables", "ip": "netlink", "ovs-vsctl": "OVSDB", "sysctl": "/proc/sys", "PowerShell.exe": "HCN", "policyctl": "",
	} {
		rulings(t, map[string]ruling{command: {
			op: add(plugin("p", 0, 1000, ran(command, 0, 990))), remedy: fmt.Sprint("^(replace |run strace -f -r "+command+").*", want),
			cause: map[bool]Cause{true: CausePowerShell, false: CauseCommand}[command == "PowerShell.exe"],
		}})
	}
}
