//go:build linux

package scenarios

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const dropForwarded = `add table inet cniscope_test; add chain inet cniscope_test forward { type filter hook forward priority 0; policy drop; }`

// outside is a machine beyond the node, with a listener; its network namespace, and its address.
func (s *scene) outside() (netns, address string) {
	s.Helper()
	const name = "cniscope-outside"
	s.run("ip", "netns", "add", name)
	s.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	s.run("ip", "link", "add", "cnisc-out", "type", "veth", "peer", "name", "eth0", "netns", name)
	s.run("ip", "addr", "add", "198.51.100.1/24", "dev", "cnisc-out")
	s.run("ip", "link", "set", "cnisc-out", "up")
	netns, address = "/run/netns/"+name, "198.51.100.9"
	s.run("ip", "-n", name, "addr", "add", address+"/24", "dev", "eth0")
	s.run("ip", "-n", name, "link", "set", "eth0", "up")
	s.run("ip", "-n", name, "route", "add", "default", "via", "198.51.100.1")
	return netns, listen(s.T, netns, address).Addr().String()
}

func (s *scene) run(command ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v: %s", command, err, out)
	}
}

// late is a fault between a pod and its first connection, until it is off again.
type late struct {
	pod, cause, says, remedy string
	on, off                  func()
	never                    bool // the pod ends before
}

// What drops a pod's packets on the node is named, with its remedy, though it is gone when the connection comes; what
// drops them elsewhere gets no remedy.
func TestWhatStoodInTheWayOfAFirstConnection(t *testing.T) {
	s := set(t, rig.Options{}, "[slow]\nfirst_connection = \"3s\"\n")
	network := s.network("pods", rig.Bridge())
	outside, server := s.outside()
	forwarding := "net.ipv4.conf." + network.Bridge + ".forwarding"
	run := func(command ...string) func() { return func() { s.run(command...) } }
	rule := late{
		"rule-0", "filter", "nftables chain forward of table inet cniscope_test dropped ", "check the NetworkPolicies",
		run("nft", strings.Replace(dropForwarded, "policy drop; }", "}; add rule inet cniscope_test forward ip daddr 198.51.100.9 drop", 1)),
		run("nft", "delete table inet cniscope_test"), false,
	}
	never := rule
	never.pod, never.never = "never-0", true
	for _, c := range []late{
		{
			"policy-0", "policy", "the policy of nftables inet cniscope_test forward is drop, and it has no rule; the kernel repeated a SYN ",
			"nft chain inet cniscope_test forward '{policy accept;}'\n",
			run("nft", dropForwarded), run("nft", "delete table inet cniscope_test"), false,
		},
		rule, never,
		{
			"switch-0", "forwarding", forwarding + " is 0; the kernel repeated a SYN ", "sysctl -w " + forwarding + "=1",
			run("sysctl", "-qw", forwarding+"=0"), run("sysctl", "-qw", forwarding+"=1"), false,
		},
		s.droppedElsewhere(outside),
	} {
		t.Run(c.pod, func(t *testing.T) {
			s := s.in(t)
			s.late(c, server)
		})
	}
}

func (s *scene) droppedElsewhere(outside string) late {
	return late{
		"elsewhere-0", "unanswered", "the kernel repeated a SYN ", "",
		func() {
			s.run("nsenter", "--net="+outside, "nft", strings.ReplaceAll(dropForwarded, "forward", "input"))
		},
		func() { s.run("nsenter", "--net="+outside, "nft", "delete table inet cniscope_test") },
		false,
	}
}

// late has a pod connect to a server while the fault is on.
func (s *scene) late(c late, server string) {
	s.Helper()
	id, netns, _ := s.stays(rig.PodOptions{Name: c.pod})
	c.on()
	undo := c.off
	defer func() { undo() }()
	connected := make(chan error)
	trying, stop := context.WithTimeout(s.ctx, time.Minute)
	defer stop()
	go func() {
		connected <- harness.Within(netns, func() error {
			conn, err := new(net.Dialer).DialContext(trying, "tcp", server)
			for errors.Is(err, unix.EHOSTUNREACH) { // no neighbor answers
				conn, err = new(net.Dialer).DialContext(trying, "tcp", server)
			}
			if err == nil {
				conn.Close()
			}
			return err
		})
	}()
	time.Sleep(5 * time.Second) // the look comes 3 s after the setup
	came := "came late"
	if c.never {
		came = "did not come"
		harness.Check(s.T, s.rig.StopPod(s.ctx, id))
		stop()
	}
	undo()
	undo = func() {}
	if err := <-connected; !c.never {
		harness.Check(s.T, err)
	}
	said := s.logged(came, c.pod)
	why := s.ask("why", "shop/"+c.pod)
	harness.Says(s.T, said, "cause="+c.cause, c.says)
	harness.Says(s.T, why, "shop/"+c.pod+"  first connection late: ", "the ADD: "+c.says)
	if c.remedy != "" {
		harness.Says(s.T, why, "→ "+c.remedy)
	}
	if !c.never {
		harness.Check(s.T, s.rig.StopPod(s.ctx, id))
	}
	if c.remedy == "" && (strings.Contains(why, "→") || strings.Contains(said, "remedy=")) {
		s.Errorf("it has a remedy: %s\n%s", said, why)
	}
}
