package judge

import (
	"path"
	"strings"
)

// native is what a program does better that calls the kernel or the service itself, by the
// command's name.
func native(command string) string {
	switch command = strings.ToLower(command); {
	case strings.HasPrefix(command, "iptables"), strings.HasPrefix(command, "ip6tables"):
		return "nftables over netlink (bridge and portmap: the nftables backends of CNI plugins 1.5 and later)"
	case command == "ip", command == "tc", command == "bridge", command == "conntrack", command == "ipset":
		return "netlink"
	case strings.HasPrefix(command, "ovs-"):
		return "OVSDB and OpenFlow from a client library"
	case command == "sysctl":
		return "a write below /proc/sys"
	case isPowerShell(command):
		return "HCN (hcsshim) instead of PowerShell"
	}
	return ""
}

func instead(command string) string {
	if n := native(command); n != "" {
		return "replace it: " + n
	}
	return "find out why it takes that long: its arguments and its parent are in the trace"
}

func isPowerShell(command string) bool {
	command = strings.TrimSuffix(strings.ToLower(path.Base(command)), ".exe")
	return command == "powershell" || command == "pwsh"
}
