package gather

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// A permanent neighbor has to have the MAC address of its link's other end, unless a bridge or the kernel decides.
func TestAPermanentNeighborWithAnOldAddress(t *testing.T) {
	alone(t)
	id := strings.Repeat("cd34", 16)
	group := groupOf(t, id)
	pod := sleeps(t, group, syscall.CLONE_NEWNET)
	inside := fmt.Sprintf("nsenter -t %d -n", pod)
	const first, second = "02:00:00:00:00:01", "02:00:00:00:00:02"
	shell(t, "ip link add v0 address %s type veth peer name eth0 netns %d; ip link set v0 up; ip link add br0 type bridge", first, pod)
	shell(t, "%[1]s ip link set eth0 up; %[1]s ip addr add 10.0.1.2/24 dev eth0; %[1]s ip neigh replace 10.99.0.1 lladdr %[2]s nud permanent dev eth0", inside, first)
	// A process of another pod, in a cgroup with the name of this pod's.
	forger := sleeps(t, group, syscall.CLONE_NEWNET)
	shell(t, "ip link add v9 address %[1]s type veth peer name eth0 netns %[2]d; ip link set v9 up; nsenter -t %[2]d -n sh -ec "+
		"'ip link set eth0 up; ip neigh replace 10.99.0.9 lladdr 02:00:00:00:00:66 nud permanent dev eth0'", second, forger)
	pods := []leak.Attachment{{ContainerID: id, NetNS: fmt.Sprintf("/proc/%d/ns/net", pod)}, {ContainerID: "other", NetNS: "/proc/none"}, {ContainerID: "unknown"}}
	many := inside + ` sh -ec 'for a in $(seq 0 15); do for b in $(seq 0 250); do echo neigh replace 10.99.$a.$b lladdr ` + first + ` nud permanent dev eth0; done; done | ip -batch -'`
	type step struct{ act, says string }
	follow := func(steps ...step) {
		t.Helper()
		for _, step := range steps {
			shell(t, "%s", step.act)
			said := ""
			for _, o := range staleNeighbors(view{sure: true}, &procfs.Residents{}, pods)[id] {
				said += o.Name
			}
			harness.Equal(t, said, step.says, step.act)
		}
	}
	follow([]step{
		{"true", ""},
		{"ip link set v0 address " + second, "the pod's permanent neighbor 10.99.0.1 has the MAC address " + first + ", but its link's other end, v0, has " + second},
		{"ip link set v0 master br0", ""},
		{"ip link set v0 nomaster; " + inside + " ip neigh replace 10.99.0.1 lladdr " + first + " nud reachable dev eth0", ""},
	}...)
	// A silent gateway: where the node has no route to it, or no proxy ARP.
	shell(t, "%[1]s ip neigh flush all nud permanent; %[1]s ip route add 169.254.1.1 dev eth0; %[1]s ip route add default via 169.254.1.1; %[1]s ip neigh replace 169.254.1.1 nud failed dev eth0", inside)
	follow([]step{
		{"ip link set v0 nomaster", "net/ipv4/conf/v0/proxy_arp is 0, so the node does not answer the pod's ARP requests for 169.254.1.1"},
		{"sysctl -qw net.ipv4.conf.v0.proxy_arp=1", "the node has no route to 169.254.1.1, so it does not answer the pod's ARP requests for it"},
		{"ip link set br0 up; ip addr add 10.9.9.1/24 dev br0; ip route add 169.254.0.0/16 dev br0", ""},
		{"sysctl -qw net.ipv4.conf.v0.proxy_arp=0; ip link set lo up; ip addr add 169.254.1.1/32 dev lo", ""},
	}...)
	shell(t, "ip addr add 10.9.8.1/24 dev br0; ip neigh replace 10.9.8.5 lladdr %s nud stale dev br0", first)
	for mac, n := range map[string]int{first: 0, second: 1} {
		found := reused([]leak.Attachment{{ContainerID: id, Addresses: []string{"10.9.8.5/24"}, Links: []string{"br0"}, MACs: []string{mac}}, {ContainerID: "x", Addresses: []string{"10.9.8.5/24"}}})
		harness.Equal(t, len(found), n, "neighbors of the node, of a pod with "+mac)
	}
	// The kernel's time grows with the square of their number: 80 s for 300,000.
	shell(t, "ip link set v0 nomaster; %s", many)
	if all := telling(pod); len(all) == 0 || len(all) > 2000 {
		t.Errorf("%d of 4016 permanent neighbors were read", len(all))
	}
	found := staleNeighbors(view{sure: true}, &procfs.Residents{}, pods)
	harness.Equal(t, len(found), 1, "pods")
	harness.Equal(t, len(found[id]), 1, "obstacles of a pod with thousands")
}

// Each thing is on the node until it is taken away; a chain without rules is gone, too.
func TestThingsThatAreGone(t *testing.T) {
	harness.Programs(t, "iptables-legacy", "iptables-nft", "nft")
	alone(t)
	config, err := json.Marshal(map[string]any{"plugins": []map[string]any{{"type": "bridge", "ipMasq": true}, {"type": "portmap"}, {"type": "firewall"}}})
	harness.Check(t, err)
	made := func(ports string) []string {
		c := cached{ContainerID: "abc", NetworkName: "pods", Config: config}
		harness.Check(t, json.Unmarshal([]byte(`{"capabilityArgs":{"portMappings":`+ports+`}}`), &c))
		return chainsOf(&c)
	}
	mapped := made(`[{"hostPort":8080}]`)
	harness.EqualSlices(t, made(`[{"containerPort":80}]`), mapped[:1], "without a port of the node")
	masq, ports := name(t, mapped[0]), name(t, mapped[1])
	shell(t, "%s", `ip link set lo up; ip link add br0 type bridge; ip link add v0 type veth peer name v1; ip link set v0 master br0 up; ip link set br0 up
		ip addr add 10.0.0.1/24 dev br0; ip rule add from 10.0.0.5 lookup 7; ip rule add iif v0 lookup 8; ip route add 10.0.0.5/32 dev br0; ip route add default via 10.0.0.9 table 7
		ip -6 rule add to fd00::5 lookup 9; iptables-legacy -t nat -N `+ports+`; iptables-legacy -t nat -A `+ports+` -j RETURN; iptables-nft -t nat -N `+masq+`; iptables-nft -t nat -A `+masq+` -j RETURN`)
	set := append(slices.Clone(mapped), "port v0 of br0", "address 10.0.0.1/24 dev br0", "rule from 10.0.0.5/32 lookup 7", "rule dev v0 lookup 8", "route 10.0.0.5/32", "route default table 7", "rule to fd00::5/128 lookup 9")
	gone := func() (names []string) {
		f := &fact.Facts{}
		f.Held.Value.Living = []leak.Attachment{{ContainerID: "abc", Set: mapped}}
		f.Scope.Value.Recent.Held = []leak.Attachment{{ContainerID: "abc", Set: set[len(mapped):]}, {ContainerID: "abc", Set: []string{"rule of a failed ADD"}, Failed: true}, {ContainerID: "gone", Set: []string{"rule of a dead pod"}}}
		var err error
		f.Chains.Value, err = Chains(context.Background())
		harness.Check(t, err)
		all := harness.Must(goneFrom(f, &procfs.Residents{}))(t)
		for _, g := range all {
			for _, o := range g.Obstacles {
				names = append(names, o.Name)
			}
		}
		return names
	}
	harness.EqualSlices(t, gone(), nil, "gone at first")
	for i, line := range []string{
		"iptables-nft -t nat -F", "iptables-legacy -t nat -F", "ip link set v0 nomaster", "ip addr add 10.0.0.1/32 dev br0; ip addr del 10.0.0.1/24 dev br0", "ip rule del from 10.0.0.5", "ip rule del iif v0",
		"ip route del 10.0.0.5/32 dev br0 || :", "ip route flush table 7", "ip -6 rule del to fd00::5",
	} {
		shell(t, "%s", line)
		if got, want := gone(), strings.Split(set[i], or)[0]; !slices.Contains(got, want) {
			t.Errorf("after %s: %s is not among %q", line, want, got)
		}
	}
	shell(t, "nft add table ip cni_hostport; nft add chain ip cni_hostport hostports; nft add rule ip cni_hostport hostports accept")
	if slices.Contains(gone(), "chain "+ports) {
		t.Error("portmap may have used nftables")
	}
}

// alone gives the test a network namespace.
func alone(t *testing.T) {
	t.Helper()
	harness.Root(t)
	runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
	harness.Check(t, unix.Unshare(unix.CLONE_NEWNET))
}

func shell(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// groupOf makes the cgroup of a container.
func groupOf(t *testing.T, id string) *os.File {
	t.Helper()
	dir := filepath.Join(harness.Unified(t), "cri-containerd-"+id+".scope")
	harness.Check(t, os.Mkdir(dir, 0o755))
	group := harness.Must(os.Open(dir))(t)
	t.Cleanup(func() { _, _ = group.Close(), os.Remove(dir) })
	return group
}

// sleeps starts a process in a cgroup, and returns its PID.
func sleeps(t *testing.T, group *os.File, flags uintptr) int {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd()), Cloneflags: flags}
	harness.Check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func name(t *testing.T, thing string) string {
	t.Helper()
	m := regexp.MustCompile(`^chain (CNI-(DN-)?[0-9a-f]+)` + or).FindStringSubmatch(thing)
	if m == nil || len(m[1]) != 28 {
		t.Fatalf("%q", thing)
	}
	return m[1]
}

// A list of thousands of plugins has few chains.
func TestARepeatedPluginHasOneChain(t *testing.T) {
	config := `{"plugins":[` + strings.Repeat(`{"type":"bridge","ipMasq":true},`, 4000) + `{"type":"ptp","ipMasq":true}]}`
	harness.Equal(t, len(chainsOf(&cached{Config: []byte(config)})), 1)
}

// By the number of its link's other end a pod with CAP_NET_ADMIN makes interfaces in the node's network namespace.
// Before: each look took 12 MiB for 1,000 of them.
func TestInterfacesThatPodsMakeAreBounded(t *testing.T) {
	harness.Slow(t)
	alone(t)
	harness.Check(t, unix.Unshare(unix.CLONE_NEWNS))
	harness.Check(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	harness.Check(t, unix.Mount("none", "/sys", "sysfs", 0, ""))
	add := func(from, to int) {
		shell(t, "for i in $(seq %d %d); do echo link add zz$i type bridge; done | ip -batch -", from, to)
	}
	add(1, 10)
	links := harness.Must(interfaces())(t)
	if len(links) < 10 {
		t.Errorf("%d interfaces", len(links))
	}
	add(11, interfacesMax+1)
	if links, err := interfaces(); err == nil {
		t.Errorf("%d interfaces are listed", len(links))
	}
}

// Interfaces come and go while they are listed.
func TestAListThatChangesIsReadAgain(t *testing.T) {
	for interrupted, want := range map[int]error{0: nil, 4: nil, 5: netlink.ErrDumpInterrupted} {
		asked := 0
		_, err := complete(func() (int, error) {
			if asked++; asked <= interrupted {
				return 0, netlink.ErrDumpInterrupted
			}
			return asked, nil
		})
		harness.Equal(t, err, want, interrupted, "interruptions")
	}
}
