//go:build linux

package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/rig"
)

// Forwarding that is off, and a firewall that drops everything, by nf_tables and legacy iptables. A
// drop beside a rule is a note.
func TestANodeThatDoesNotForward(t *testing.T) {
	n := newNode(t, rig.Options{})
	s := newScene(t, n)
	s.inside("sysctl", "-qw", "net.ipv4.ip_forward=1")
	s.silent("forwarding")
	s.inside("sysctl", "-qw", "net.ipv4.ip_forward=0")
	s.finds("forwarding", doctor.Problem, "net.ipv4.ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1")
	s.inside("sysctl", "-qw", "net.ipv4.ip_forward=1")
	for _, iptables := range []string{"iptables-nft", "iptables-legacy"} {
		s.inside(iptables, "-P", "INPUT", "DROP")
		s.silent("forwarding")
		s.inside(iptables, "-P", "FORWARD", "DROP")
		s.finds("forwarding", doctor.Problem, "ip filter FORWARD is drop, and it has no rule", "policy drop, 0 rules")
		s.inside(iptables, "-A", "FORWARD", "-s", "10.0.0.0/8", "-j", "ACCEPT")
		s.finds("forwarding", doctor.Note, "drops forwarded packets that no rule accepts", "policy drop, 1 rule")
		s.inside(iptables, "-P", "FORWARD", "ACCEPT")
		s.silent("forwarding")
	}
	s.inside("iptables-nft", "-A", "FORWARD", "-s", "10.9.0.0/16", "-j", "REJECT")
	s.silent("forwarding")
	s.inside("iptables-nft", "-A", "FORWARD", "-j", "REJECT", "--reject-with", "icmp-host-prohibited")
	s.finds("forwarding", doctor.Note, "drops or rejects packets that none of the 2 rules before it accepts", "after 2 rules")
	s.inside("iptables-nft", "-F", "FORWARD")
	s.inside("iptables-nft", "-A", "FORWARD", "-j", "REJECT", "--reject-with", "icmp-host-prohibited")
	f := s.finds("forwarding", doctor.Problem, "the first rule of nftables ip filter FORWARD drops or rejects every packet")
	command, _, _ := strings.Cut(f.Remedy[0], ";")
	s.inside(strings.Fields(command)...)
	s.silent("forwarding")
	if _, err := os.Stat("/proc/sys/net/bridge"); err == nil {
		s.inside("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=0")
		s.silent("forwarding")
		s.inside("iptables-nft", "-t", "nat", "-N", "KUBE-SERVICES")
		s.finds("forwarding", doctor.Warning, "no answer from a Service", "net.bridge.bridge-nf-call-iptables=1")
	}
}
