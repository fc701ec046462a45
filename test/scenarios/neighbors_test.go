//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// private gives the test and its cniscope a node's network namespace, for this goroutine only.
func private(t *testing.T) {
	harness.Root(t)
	runtime.LockOSThread() // never unlocked, so that the thread ends with the test
	harness.Check(t, unix.Unshare(unix.CLONE_NEWNET))
	whole := program
	program = filepath.Join(t.TempDir(), "cniscope") // another thread starts it
	t.Cleanup(func() { program = whole })
	harness.Check(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexec nsenter --net=/proc/%d/task/%d/ns/net %s \"$@\"\n",
		os.Getpid(), unix.Gettid(), whole), 0o755))
}

// The reason why the node does not answer ARP for the gateway 169.254.1.1 is named: it has no route there, or proxy ARP
// is off. What drops the request is another cause. So is the node's entry of an earlier pod with the same address, but
// not the right entry of an idle pod.
func TestWhyNeighborsDoNotAnswer(t *testing.T) {
	private(t)
	onAdd := func(body string) []byte {
		return rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then ip=${conf#*'"address":"'}; ip=${ip%%/*}; set -- $(ip -o route get $ip); ` + body + "; fi")
	}
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"linked": onAdd(`echo 1 > /proc/sys/net/ipv4/conf/$3/proxy_arp; ip addr flush dev $3 scope global; ip route replace $ip dev $3
			n="nsenter --net=$CNI_NETNS"; $n ip route flush table main; $n ip route add 169.254.1.1 dev eth0 scope link; $n ip route add default via 169.254.1.1`),
		"staler": onAdd("ip neigh replace $ip lladdr 02:00:00:00:99:02 nud stale dev $3"),
	}}, "[slow]\nfirst_connection = \"3s\"\n")
	s.run("ip", "link", "set", "lo", "up")
	run := func(command string) func() { return func() { s.run("sh", "-ec", command) } }
	ptp := func(n rig.Net) rig.Conf { return rig.Conf{"type": "ptp", "ipam": rig.HostLocal(n.DataDir, n.Subnet)} }
	s.network("linked", ptp, rig.Test("linked"))
	_, server := s.outside()
	const end = "end=$(ip -o link show type veth | tail -n 1 | sed 's/[0-9]*: //; s/@.*//'); "
	for _, c := range []late{
		{
			"route-0", "arp", "the node has no route to 169.254.1.1, so it does not answer", "add a default route on this node",
			func() {}, run("ip route add default via 198.51.100.9"), false,
		},
		{
			"proxy-0", "arp", "net/ipv4/conf/veth", "read the log of the agent that should set it",
			run(end + "echo 0 > /proc/sys/net/ipv4/conf/$end/proxy_arp"), run(end + "echo 1 > /proc/sys/net/ipv4/conf/$end/proxy_arp"), false,
		},
		{
			"dropped-0", "arp", "", "",
			run("nft add table arp t; nft 'add chain arp t i { type filter hook input priority 0; policy drop; }'"), run("nft delete table arp t"), false,
		},
	} {
		s.late(c, server)
	}
	bridge := []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false})}
	for _, c := range []struct {
		pod, cause, says string
		chain            []rig.Plugin
	}{
		{"stale-0", "neighbor", "has the MAC address 02:00:00:00:99:02, but the pod has ", append(bridge, rig.Test("staler"))},
		{"fresh-0", "idle", "it was idle", bridge},
	} {
		s.network(strings.TrimSuffix(c.pod, "-0"), c.chain...)
		id, netns, ip := s.stays(rig.PodOptions{Name: c.pod})
		if c.cause == "idle" {
			time.Sleep(4 * time.Second)
		}
		connects(t, netns, ip) // the kernel asks again after 5 s
		said := s.logged("came late", c.pod)
		harness.Says(t, said, "cause="+c.cause, c.says)
		if is := strings.Contains(said, "remedy=\"ip neigh del "); is != (c.cause == "neighbor") {
			t.Error(said)
		}
		harness.Check(t, s.rig.StopPod(s.ctx, id))
	}
}
