package probe

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// asked runs a script as a plugin in its own network namespace. $PEER is the file of another.
func asked(t *testing.T, script string) (o *observed, peer, stdout, stderr string) {
	t.Helper()
	harness.Root(t)
	other := exec.Command("sleep", "60")
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	harness.Check(t, tied.Start(other))
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	file := fmt.Sprintf("/proc/%d/ns/net", other.Process.Pid)
	peer = harness.Must(os.Readlink(file))(t)
	cmd := plugin(t, "network", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	self := harness.Must(os.Executable())(t)
	cmd.Env = append(cmd.Env, "PEER="+file, "HELPER="+self)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	o = observe(t, func(*observed) {
		if err := cmd.Run(); err != nil {
			t.Errorf("the plugin: %v\n%s", err, complaints.String())
		}
	})
	return o, strings.Trim(strings.TrimPrefix(peer, "net:"), "[]"), out.String(), complaints.String()
}

func (o *observed) any(is func(event.Body) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.events, func(e event.Event) bool { return is(e.Body) })
}

// foreign reports whether a plugin of another test or runtime was seen.
func (o *observed) foreign() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.seen, func(c string) bool { return c != container })
}

// changes prints a protocol's requests. Interfaces are named as in `ip -o link`.
func changes(o *observed, protocol, links string) (lines []string) {
	names := map[string]string{"0": ""}
	for line := range strings.Lines(links) {
		if f := strings.Split(line, ": "); len(f) > 1 {
			name, _, _ := strings.Cut(f[1], "@")
			names[f[0]] = name
		}
	}
	name := func(index uint32) string {
		s := strconv.Itoa(int(index))
		if n, known := names[s]; known {
			return n
		}
		return s
	}
	for _, q := range all[*event.Request](o) {
		if q.Query() || q.Protocol != protocol {
			continue
		}
		words := []string{q.Name}
		add := func(what, value string) {
			if value != "" && value != "0" {
				words = append(words, strings.TrimSpace(what+" "+value))
			}
		}
		i := q.Interface
		add("on", name(i.Index))
		add("", i.Name)
		add("a", i.Kind)
		add("to", i.Peer)
		add("in", i.NetNS.Label)
		add("other end in", i.PeerNetNS.Label)
		add("under", name(i.Master))
		add("", i.State)
		add("mtu", strconv.Itoa(int(i.MTU)))
		add("mac", i.MAC)
		add("address", q.Address)
		add("route", q.Route)
		add("via", q.Gateway)
		add("table", q.Table)
		add("chain", q.Chain)
		add("times", strconv.Itoa(q.Count))
		add("failed", q.Error)
		if q.Exclusive {
			add("", "if new")
		}
		for _, a := range all[*event.Answer](o) {
			if a.Process == q.Process && a.Port == q.Port && a.Sequence == q.Sequence {
				add("refused", a.Error)
			}
		}
		lines = append(lines, strings.Join(words, ", "))
	}
	return lines
}

func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	harness.EqualSlices(t, got, want, "seen", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func TestWhatIsAskedOfInterfacesIsSeen(t *testing.T) {
	o, peer, links, complaints := asked(t, `
		ip link add br7 type bridge
		ip link add veth7 mtu 1400 type veth peer name eth7 netns $PEER
		ip link set veth7 master br7
		ip link set br7 address 02:00:00:00:00:01 up
		ip link set veth7 up
		ip addr add 10.9.0.1/24 dev br7
		ip addr add 10.9.0.1/24 dev br7
		ip route add default via 10.9.0.2
		ip route add 10.8.0.0/16 via 10.9.0.3 dev br7 table 100
		ip -6 route add fd09::/64 dev br7
		ip route add 10.7.0.0/16 via 10.200.0.1
		ip neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev br7
		ip rule add from 10.9.0.0/24 table 100
		bridge link set dev veth7 hairpin on
		ip route del default
		ip link add veth8 type veth peer name veth9
		ip -o link show veth9
		ip link set veth9 netns $PEER
		ip link set veth8 down
		ip link set veth8 name veth10
		ip -o link
		ip link del veth10`)
	compare(t, changes(o, "rtnetlink", links),
		"RTM_NEWLINK, br7, a bridge, if new",
		"RTM_NEWLINK, veth7, a veth, to eth7, other end in "+peer+", mtu 1400, if new",
		"RTM_NEWLINK, on veth7, under br7",
		"RTM_NEWLINK, on br7, up, mac 02:00:00:00:00:01",
		"RTM_NEWLINK, on veth7, up",
		"RTM_NEWADDR, on br7, address 10.9.0.1/24, if new",
		"RTM_NEWADDR, on br7, address 10.9.0.1/24, if new, refused EEXIST",
		"RTM_NEWROUTE, route default, via 10.9.0.2, if new",
		"RTM_NEWROUTE, on br7, route 10.8.0.0/16, via 10.9.0.3, table 100, if new",
		"RTM_NEWROUTE, on br7, route fd09::/64, if new",
		"RTM_NEWROUTE, route 10.7.0.0/16, via 10.200.0.1, if new, refused ENETUNREACH",
		"RTM_NEWNEIGH, on br7, mac 02:00:00:00:00:07, address 10.9.0.7, if new",
		"RTM_NEWRULE, address 10.9.0.0/24, table 100, if new",
		"RTM_SETLINK, on veth7",
		"RTM_DELROUTE, route default",
		"RTM_NEWLINK, veth8, a veth, to veth9, if new",
		"RTM_NEWLINK, on veth9, in "+peer,
		"RTM_NEWLINK, on veth10, down",
		"RTM_NEWLINK, on veth10, veth10",
		"RTM_DELLINK, on veth10",
	)
	for _, q := range all[*event.Request](o) {
		if ns := q.Interface.PeerNetNS; ns.Label != "" && q.NetNS.Key != q.NetNS.Label && ns.Key == ns.Label {
			t.Errorf("the namespace of the other end goes by its inode alone: %+v", q)
		}
	}
	said := 0
	for _, a := range all[*event.Answer](o) { // the kernel's message is ip's output
		if a.Message != "" {
			said++
		}
		if !strings.Contains(complaints, a.Message) {
			t.Errorf("%q is not in\n%s", a.Message, complaints)
		}
	}
	if said == 0 {
		t.Errorf("no refusal in words; ip said\n%s", complaints)
	}
}

func TestWhatIsAskedOfThePacketFilterIsSeen(t *testing.T) {
	o, _, _, _ := asked(t, `
		nft -f - <<-END
			table inet cni {
				set pods { type ipv4_addr; elements = { 10.9.0.5, 10.9.0.6 } }
				chain forward {
					ip saddr @pods accept
					ip daddr @pods accept
					drop
				}
			}
		END
		nft list ruleset
		nft add chain inet cni forward
		nft create chain inet cni forward
		nft flush chain inet cni forward
		nft delete table inet cni
		exit 0`)
	compare(t, changes(o, "nf_tables", ""),
		"NFT_MSG_NEWTABLE, table cni",
		"NFT_MSG_NEWCHAIN, table cni, chain forward",
		"NFT_MSG_NEWSET, table cni",
		"NFT_MSG_NEWSETELEM, table cni",
		"NFT_MSG_NEWRULE, table cni, chain forward, times 3",
		"NFT_MSG_NEWCHAIN, table cni, chain forward",
		"NFT_MSG_NEWCHAIN, table cni, chain forward, if new, refused EEXIST",
		"NFT_MSG_DELRULE, table cni, chain forward",
		"NFT_MSG_DELTABLE, table cni",
	)
}

func TestWhatIsAskedOfIptablesIsSeen(t *testing.T) {
	harness.Programs(t, "iptables-legacy", "ip6tables-legacy")
	o, _, _, _ := asked(t, `
		iptables-legacy -w -t nat -N CNI-HOSTPORT
		iptables-legacy -w -t nat -A CNI-HOSTPORT -j RETURN
		iptables-legacy -w -t nat -C CNI-HOSTPORT -j DROP
		ip6tables-legacy -w -N CNI-FORWARD`)
	compare(t, changes(o, "iptables", ""), "IPT_SO_SET_REPLACE, table nat", "IPT_SO_SET_REPLACE, table nat")
	compare(t, changes(o, "ip6tables", ""), "IP6T_SO_SET_REPLACE, table filter")
}

type network struct {
	t    *testing.T
	path string
	work chan func()
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	harness.Root(t)
	n := &network{t: t, work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // the namespace ends with the thread
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- err
		for f := range n.work {
			f()
		}
	}()
	harness.Check(t, <-made)
	t.Cleanup(func() { close(n.work) })
	return n
}

func (n *network) in(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

func (n *network) ip(lines ...string) {
	n.t.Helper()
	n.in(func() {
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				n.t.Errorf("ip %s: %v\n%s", line, err, out)
			}
		}
	})
}

func (n *network) join(to *network, own, other string) {
	n.t.Helper()
	n.ip("link set lo up", "link add far type veth peer name near netns "+to.path, "addr add "+own+" dev far", "link set far up")
	to.ip("link set lo up", "addr add "+other+" dev near", "link set near up")
	for name, in := range map[string]*network{"far": n, "near": to} {
		harness.Until(n.t, name+" has a carrier", func() (has bool) {
			in.in(func() {
				i, err := net.InterfaceByName(name)
				has = err == nil && i.Flags&net.FlagRunning != 0
			})
			return has
		})
	}
}

func (o *observed) until(t *testing.T, what string, is func(event.Body) bool) {
	t.Helper()
	harness.Until(t, what, func() bool { return o.any(is) })
}

func TestShortQuestionsAreCountedAndChangesTold(t *testing.T) {
	harness.Root(t)
	cmd := plugin(t, "asking", "ip link show dev lo >/dev/null; ip link add br9 type bridge; ip -o addr >/dev/null")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	o := observeProbe(t, Options{Detail: DetailAlways, MinSpan: time.Second}, func(*Probe, *observed) {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	asked := map[event.Process]uint64{}
	for _, q := range all[*event.Questions](o) {
		if q.Took <= 0 {
			t.Errorf("%d questions took %d ns", q.Count, q.Took)
		}
		asked[q.Process] += q.Count
	}
	requests := all[*event.Request](o)
	if !slices.ContainsFunc(requests, func(q *event.Request) bool { return q.Name == "RTM_NEWLINK" && q.Verb == event.VerbAdd }) {
		t.Errorf("the bridge was not told of: %d requests", len(requests))
	}
	told := 0
	for _, q := range requests {
		if q.Query() && q.Name != "RTM_NEWLINK" { // ip probes the kernel in this way
			told++
		}
	}
	if len(asked) < 2 || told > len(asked) { // one may have lasted a millisecond
		t.Errorf("counted for %d processes, and %d told", len(asked), told)
	}
}

func TestAFirstConnectionIsToldByItsEnd(t *testing.T) {
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip(err)
	}
	pod := newNetwork(t)
	pod.ip("link set lo up")
	var c net.Conn
	pod.in(func() {
		l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { l.Close() })
		c = harness.Must(net.Dial("tcp", l.Addr().String()))(t)
	})
	cmd := plugin(t, "late", "nsenter --net="+pod.path+" true")
	o := observe(t, func(o *observed) {
		harness.Check(t, cmd.Run()) // awaited from now on
		c.Close()
		o.until(t, "it is told", func(b event.Body) bool { _, is := b.(*event.FirstConnection); return is })
	})
	entered := all[*event.Enter](o)
	first := all[*event.FirstConnection](o)
	if len(entered) == 0 || len(first) != 1 || first[0].NetNS != entered[0].NetNS {
		t.Errorf("%+v after %+v", first, entered)
	}
}
